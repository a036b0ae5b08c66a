// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// newHelped has an agent that writes files itself and has tools of the watchdog. The test calls these in its place.
func newHelped(t *testing.T, script func(*world) string, change ...func(*protocol.Orders)) *world {
	w := newMonastery(t, "", change...)
	w.runtimes = []runtimes.Runtime{{Name: "monk", Available: true, Interactive: true, MCP: true, Sessions: true, Adapter: monk{}}}
	w.intake.Order(func(o *protocol.Orders) { o.Agent.Command[2] = script(w) })
	return w
}

// TestToolsInInteractiveMode: an agent that writes files itself asks a user and says what it has done. That it says so does not end it, and is what
// the agent of the next task reads. An agent that does not say so has done its task as well.
func TestToolsInInteractiveMode(t *testing.T) {
	t.Parallel()
	w := newHelped(t, func(w *world) string {
		return `case "$TIDEWAITER_TASK" in page/form) echo form > web/form.html; ` + w.byHand() + `echo late > web/late.html;; *) echo save > web/save.html;; esac`
	}, func(o *protocol.Orders) { o.Tasks = []protocol.Task{{Name: "page/form"}, {Name: "page/save"}} })
	p := w.start(1, nil)
	c := w.connect()
	var answer struct{ Status, Answer string }
	c.call("ask_user", map[string]any{"question_id": "q1", "question": "Which colour?", "wait_seconds": 1}, &answer)
	if answer.Status != "pending" {
		t.Errorf("nobody has answered: %+v", answer)
	}
	w.eventually("the question is told", func() bool { s := w.intake.Status(); return s.Question != nil && s.Question.ID == "q1" })
	w.intake.Order(func(o *protocol.Orders) { o.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}} })
	w.eventually("the answer comes", func() bool {
		c.call("ask_user", map[string]any{"question_id": "q1", "question": "Which colour?", "wait_seconds": 1}, &answer)
		return answer.Answer == "Blue."
	})
	if text, ok := c.try("repo_apply_patch", map[string]any{"operation_id": "one", "patch": newFile("web/a.html", "a")}); ok {
		t.Errorf("it sends patches: %s", text)
	}
	c.complete()
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	for path, want := range map[string]string{"web/form.html": "form", "web/late.html": "late", "web/save.html": "save"} {
		if got := w.delivered(path); got != want {
			t.Errorf("%s has %q", path, got)
		}
	}
	tasks := w.intake.Status().Tasks
	if len(tasks) != 2 || tasks[0].Work == nil || tasks[0].Work.Summary != "It is done." || tasks[1].Work == nil || tasks[1].Work.Summary != "" || tasks[1].State != protocol.TaskDone {
		t.Errorf("tasks %+v", tasks)
	}
}

// TestACompletedTaskThatFails: the exit code decides about an agent that writes files itself, whatever it has said.
func TestACompletedTaskThatFails(t *testing.T) {
	t.Parallel()
	w := newHelped(t, func(w *world) string { return w.byHand() + "exit 7" })
	p := w.start(1, nil)
	w.connect().complete()
	w.signal("exit")
	f := p.finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	if !strings.Contains(f.Message, "exited with code 7") {
		t.Errorf("message %q", f.Message)
	}
}
