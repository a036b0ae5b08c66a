// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// plantedToken looks like one of GitHub's, and is none.
const plantedToken = "ghp_" + "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO"

// left is all that has left the pod for people: the log, the reports, and the records of the ledger.
func (w *world) left() map[string]string {
	w.t.Helper()
	all := map[string]string{"the log": w.log.String()}
	for what, document := range map[string]any{"reports": w.intake.Reports(), "diffs of the ledger": w.ledger.all(), "steering of the ledger": w.ledger.steered()} {
		text, err := json.Marshal(document)
		if err != nil {
			w.t.Fatal(err)
		}
		all[what] = string(text)
	}
	return all
}

// wantNoToken: what was planted is nowhere outside of the volumes, and a mark is where it would have been.
func (w *world) wantNoToken(marks map[string]int) {
	w.t.Helper()
	for where, text := range w.left() {
		if n := strings.Count(text, plantedToken); n > 0 {
			at := strings.Index(text, plantedToken)
			w.t.Errorf("%s: the token is there %d times: …%s…", where, n, text[max(0, at-200):min(len(text), at+100)])
		}
		if n := strings.Count(text, "[redacted: github-pat]"); n < marks[where] {
			w.t.Errorf("%s: there are %d marks instead of %d or more", where, n, marks[where])
		}
	}
}

// TestATokenOfToolsStaysInTheVolume: in a file, the name of a file, the arguments of tools, a question and the reason of a directive.
func TestATokenOfToolsStaysInTheVolume(t *testing.T) {
	t.Parallel()
	w := agentByHand(t)
	p := w.start(1, nil)
	c := w.connect()
	w.gives("use-dict", "Take the labels from the dictionary.")
	w.reports("use-dict Active")
	c.call("feature_get_context", map[string]any{}, &struct{}{})
	if a := c.patch("o1", newFile("web/"+plantedToken+".html", "token = \""+plantedToken+"\"")); len(a.Violations) == 0 {
		t.Errorf("a file with a token: %+v", a)
	}
	if a := c.patch("o2", newFile("web/"+plantedToken+".html", "Nothing.")); len(a.Violations) > 0 {
		t.Errorf("a name with a token: %+v", a)
	}
	c.try("repo_read_file", map[string]any{"path": plantedToken})
	c.try(plantedToken, map[string]any{"token": plantedToken})
	var answer struct{ Status string }
	c.call("ask_user", map[string]any{"question_id": "q1", "question": "May I use " + plantedToken + "?", "wait_seconds": 1}, &answer)
	w.eventually("the question is told", func() bool { s := w.intake.Status(); return s.Question != nil })
	w.intake.Order(func(o *protocol.Orders) { o.Answers = []protocol.Answer{{Question: "q1", Text: "No."}} })
	c.call("ask_user", map[string]any{"question_id": "q1", "question": "May I use " + plantedToken + "?", "wait_seconds": 50}, &answer)
	if text, ok := c.try("directive_settle", map[string]any{"directive_id": "use-dict", "outcome": "CANNOT", "reason": "it needs " + plantedToken}); !ok {
		t.Error(text)
	}
	w.reports("use-dict Escalated", "answer/q1 Addressed")
	c.call("task_complete", map[string]any{"summary": "It is done with " + plantedToken}, &struct{}{})
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantNoToken(map[string]int{"reports": 5, "diffs of the ledger": 1})
	if got := w.delivered("web/" + plantedToken + ".html"); got != "Nothing." {
		t.Errorf("the repository has %q", got)
	}
}

// TestATokenOfFilesStaysInTheVolume: in violations, in what is delivered, and in the words of an agent that ends.
func TestATokenOfFilesStaysInTheVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo a > web/`+plantedToken+`.html; echo "token = '`+plantedToken+`'" > web/a.html; echo b > web/legacy/`+plantedToken+`; echo `+plantedToken+`; exit 3`)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	if n := len(w.intake.Checkpoints()[0].Violations); n < 2 {
		t.Errorf("%d violations", n)
	}
	w.wantNoToken(map[string]int{"reports": 2, "diffs of the ledger": 2})
}

// TestATokenOfAConversationStaysInTheVolume: in an answer of the model, the answer to a directive and the arguments of a tool.
func TestATokenOfAConversationStaysInTheVolume(t *testing.T) {
	t.Parallel()
	t.Run("a directive", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "", seldom, func(o *protocol.Orders) { o.Agent.Runtime = "scholar" })
		w.runtimes = []runtimes.Runtime{{Name: "scholar", Available: true, Interactive: true, Sessions: true, Adapter: scholar{}}}
		model := &confidant{answer: "Well."}
		run, _ := w.withModels(model, nil)
		k := &talk{w: w, model: model}
		w.gives("no-cookies", "Use no cookies.")
		w.reports("no-cookies Pending")
		k.say("Add a login page with "+plantedToken+".", "I use "+plantedToken+".")
		k.say("Go on.", "DIRECTIVE no-cookies: CANNOT - it needs "+plantedToken)
		w.reports("no-cookies Escalated")
		w.signal("end")
		run.finish()
		w.wantNoToken(map[string]int{"reports": 1})
	})
	t.Run("a loop", func(t *testing.T) {
		t.Parallel()
		c := newCircling(t, nil)
		c.file, c.tool = plantedToken, plantedToken
		if err := c.untilTold(); err != nil {
			t.Fatal(err)
		}
		c.signal("end")
		wantFinal(t, c.run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		c.wantNoToken(map[string]int{"the log": 1, "reports": 1, "steering of the ledger": 1})
	})
}
