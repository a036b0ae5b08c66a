// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// newAborting is a world with three tasks, of which the second cannot be done: its gate always fails. It writes what the rules allow, so that its
// work is promoted. Each task writes a file with its name, and keeps its instructions.
func newAborting(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "", seldom)
	w.runtimes = []runtimes.Runtime{{Name: "reader", Available: true, Interactive: true, Adapter: reader{}}}
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `task=${TIDEWAITER_TASK#page/}; cat > "$HOME/told-$task"; echo $task >> web/$task.html
			[ $task != form ] || { echo spoilt >> web/first.html; rm -f web/index.html; }`
		o.Agent.Runtime = "reader"
		o.Policy.Supervision.MaxCorrections = 1
		o.Gates = []protocol.Gate{{Name: "never", Command: []string{"sh", "-c", "exit 4"}, Timeout: time.Minute}}
		o.Tasks = []protocol.Task{{Name: "page/first", Continue: true}, {Name: "page/form", Gates: []string{"never"}, Continue: true}, {Name: "page/save"}}
	})
	return w
}

// instructed are the instructions that the agent of a task had last.
func (w *world) instructed(task string) string {
	data, err := os.ReadFile(filepath.Join(w.paths.Home, "told-"+task))
	if err != nil {
		w.t.Errorf("no agent of %s: %v", task, err)
	}
	return string(data)
}

// wantAborted: form is aborted and what its agent has done is not delivered, and all of it is in the chain.
func (w *world) wantAborted(f protocol.FinalReport) {
	w.t.Helper()
	wantFinal(w.t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if !strings.Contains(f.Message, `not done, because they were aborted: "page/form"`) {
		w.t.Errorf("message %q", f.Message)
	}
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/first.html\nA\tweb/save.html" {
		w.t.Errorf("branch changes %q", got)
	}
	if got := w.delivered("web/first.html"); got != "first" {
		w.t.Errorf("first is delivered as %q", got)
	}
	if objects := w.trusted("rev-list", "--objects", protocol.RefChain); !strings.Contains(objects, "web/form.html") {
		w.t.Error("the chain does not have what the agent wrote")
	}
	if got := w.aborts(); len(got) != 1 || got[0].Name != "page/form" || got[0].Reason != protocol.ReasonGateFailed {
		w.t.Errorf("aborts %+v", got)
	}
	first := int64(0)
	for _, c := range w.intake.Checkpoints() {
		if c.Task == "page/first" && c.Verdict == protocol.Valid {
			first = c.Sequence
		}
		if b := c.Rollback; b != nil && (b.Cause != protocol.RollbackBySupervision || b.To != first || b.To == 0 || b.ToBase) {
			w.t.Errorf("checkpoint %d went back as %+v, and the task before the aborted one ended at checkpoint %d", c.Sequence, *b, first)
		}
	}
	told := w.instructed("save")
	for _, part := range []string{"- form: aborted", "- page/form: NOT done.", `gate \"never\" exited with code 4`, "- page/first: done"} {
		if !strings.Contains(told, part) {
			w.t.Errorf("the next task is not told %q:\n%s", part, told)
		}
	}
	w.wantEveryCheckpointOnce()
	w.trusted("fsck", "--full", "--strict", "--no-dangling")
	if code, out := verify(w.t, w.paths.Trusted, "--history"); code != 0 {
		w.t.Errorf("verify: code %d\n%s", code, out)
	}
}

// aborts are the records of tasks that were given up.
func (w *world) aborts() (all []journal.TaskAborted) {
	records, _ := w.recorded()
	for _, r := range records {
		if r.TaskAborted != nil {
			all = append(all, *r.TaskAborted)
		}
	}
	return all
}

// TestATaskThatCannotBeDoneIsAborted: the work continues with the state from the beginning of the task.
func TestATaskThatCannotBeDoneIsAborted(t *testing.T) {
	t.Parallel()
	w := newAborting(t)
	w.wantAborted(w.start(1, nil).finish())
	var tasks []protocol.TaskStatus
	for _, r := range w.intake.Reports() {
		if r.Status != nil && len(r.Status.Tasks) > 0 {
			tasks = r.Status.Tasks
		}
	}
	if len(tasks) != 3 || tasks[1].State != protocol.TaskAborted || tasks[1].Corrections != 1 || !strings.Contains(tasks[1].Message, "exited with code 4") || tasks[1].Work == nil || tasks[2].State != protocol.TaskDone {
		t.Errorf("tasks %+v", tasks)
	}
}

// TestACrashWhileATaskIsAborted: whatever step the watchdog ends after, also with its pod, the task is aborted once and the work continues.
func TestACrashWhileATaskIsAborted(t *testing.T) {
	t.Parallel()
	const decided, done = "task aborted", "done journaled"
	// An abort takes three checkpoints: of the rollback, of what is there then, and the one that ends it, which has nothing new to commit. After a
	// crash in the first one or in the second one, the last one is next. What completes a checkpoint after its intent is no step of a new pod.
	lives := map[string][]plug{
		"first": slices.Concat([]plug{{step: "gate ran", nth: 2}}, after(decided, "captured", "committed", "intent journaled", "restored", "refs moved", "spooled", done),
			after("captured", "restored", "spooled", "task begun")),
		"second, committed": slices.Concat(past(decided, done), after("committed")),
		"second, journaled": slices.Concat(past(decided, done), after("intent journaled", "restored", "refs moved", "spooled", done),
			after("intent journaled", "refs moved", done), past("task begun")),
		"first, a lost pod":                     slices.Concat(lost(decided, "committed", "restored"), lost("restored", "task begun")),
		"first, a lost pod after its report":    slices.Concat(past(decided), lost("spooled"), lost("spooled"), past("task begun")),
		"second, a lost pod after its capture":  slices.Concat(past(decided, done), lost("captured")),
		"second, a lost pod after its intent":   slices.Concat(past(decided, done), lost("intent journaled")),
		"second, a lost pod after its refs":     slices.Concat(past(decided, done), lost("refs moved")),
		"second, a lost pod after all its work": slices.Concat(past(decided, done), lost(done)),
	}
	for name, list := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAborting(t)
			p := newPlugs(t, list)
			w.wantAborted(p.pods(w.start(1, p.probe())).finish())
		})
	}
}

// TestEveryTaskIsAborted: there is nothing to deliver. A retry, after which the tasks can be done, begins them again.
func TestEveryTaskIsAborted(t *testing.T) {
	t.Parallel()
	w := newAborting(t)
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Supervision.MaxCorrections = 0
		for i := range o.Tasks {
			o.Tasks[i].Gates, o.Tasks[i].Continue = []string{"never"}, true
		}
	})
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonTasksAborted)
	if !strings.Contains(f.Message, `"page/first", "page/form", "page/save"`) || w.branch() != "" || len(w.aborts()) != 3 {
		t.Errorf("message %q, branch %q, aborts %+v", f.Message, w.branch(), w.aborts())
	}
	for _, c := range w.intake.Checkpoints() {
		if b := c.Rollback; b != nil && (b.To != 0 || !b.ToBase) {
			t.Errorf("checkpoint %d went back as %+v, and the task began on the base", c.Sequence, *b)
		}
	}
	if _, err := os.Stat(filepath.Join(w.paths.Workspace, "web/index.html")); err != nil {
		t.Errorf("the workspace is not as it was: %v", err)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Gates[0].Command = []string{"true"} })
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/save.html"); got != "save" {
		t.Errorf("save is delivered as %q", got)
	}
	w.wantEveryCheckpointOnce()
}

// TestAnAgentThatFailsAgainAndAgain spends the retries of its task, and then the task is aborted. A task that blocks has no such count.
func TestAnAgentThatFailsAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := newAborting(t)
	w.intake.Order(func(o *protocol.Orders) {
		o.MaxRetries, o.Tasks[1].Gates = 1, nil
		o.Agent.Command[2] += `; [ $task != form ] || exit 3`
	})
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	if f.TaskFailures != 1 {
		t.Errorf("failures %d", f.TaskFailures)
	}
	f = w.start(2, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.aborts(); len(got) != 1 || got[0].Reason != protocol.ReasonAgentFailed || !strings.Contains(got[0].Message, "exited with code 3") {
		t.Errorf("aborts %+v", got)
	}
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/first.html\nA\tweb/save.html" {
		t.Errorf("branch changes %q", got)
	}
	w.wantEveryCheckpointOnce()

	blocks := newAborting(t)
	blocks.intake.Order(func(o *protocol.Orders) {
		o.MaxRetries, o.Tasks[1].Gates, o.Tasks[1].Continue = 0, nil, false
		o.Agent.Command[2] += `; [ $task != form ] || exit 3`
	})
	f = blocks.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	if f.TaskFailures != 0 || len(blocks.aborts()) != 0 {
		t.Errorf("failures %d, aborts %+v", f.TaskFailures, blocks.aborts())
	}
}

// TestTheLastTaskIsAborted: the delivery does not have its work, although no later task has a checkpoint.
func TestTheLastTaskIsAborted(t *testing.T) {
	t.Parallel()
	w := newAborting(t)
	w.intake.Order(func(o *protocol.Orders) { o.Tasks = o.Tasks[:2] })
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/first.html" {
		t.Errorf("branch changes %q", got)
	}
	w.wantEveryCheckpointOnce()
}

// TestInvalidWorkIsAborted: what was never promoted leaves the workspace.
func TestInvalidWorkIsAborted(t *testing.T) {
	t.Parallel()
	w := newAborting(t)
	w.intake.Order(func(o *protocol.Orders) {
		o.Tasks[1].Gates = nil
		o.Agent.Command[2] += `; [ $task != form ] || echo evil > web/legacy/evil.html`
	})
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/first.html\nA\tweb/save.html" {
		t.Errorf("branch changes %q", got)
	}
	w.wantBlob("evil\n", false)
	if got := w.aborts(); len(got) != 1 || got[0].Reason != protocol.ReasonCheckpointInvalid {
		t.Errorf("aborts %+v", got)
	}
	w.wantEveryCheckpointOnce()
}

// TestAnAbortThatThePolicyRefuses: if the state without the task may not be there any more, the Feature is blocked as it would be without the abort. A retry
// under another policy completes the abort.
func TestAnAbortThatThePolicyRefuses(t *testing.T) {
	t.Parallel()
	w := newAborting(t)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] += `; [ $task$TIDEWAITER_ATTEMPT != form1 ] || { ` + w.signalled("form") + w.waitFor("never") + `}`
	})
	p := w.start(1, nil)
	w.waitSignal("form")
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, p.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)

	w.intake.Order(func(o *protocol.Orders) {
		o.Suspend = false
		shadow(o)
		o.Plan.Forbidden = append(o.Plan.Forbidden, "web/first.html")
	})
	f := w.start(2, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	if !strings.Contains(f.Message, "the watchdog cannot take its changes out of the workspace: the policy (strategy Shadow") {
		t.Errorf("message %q", f.Message)
	}

	w.intake.Order(func(o *protocol.Orders) { o.Plan.Forbidden = []string{"web/legacy/**"} })
	f = w.start(3, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/first.html\nA\tweb/save.html" {
		t.Errorf("branch changes %q", got)
	}
	if got := w.aborts(); len(got) != 2 || got[0].ID == got[1].ID || got[0].Message != got[1].Message {
		t.Errorf("aborts %+v", got)
	}
	w.wantEveryCheckpointOnce()
}
