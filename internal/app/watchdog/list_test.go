// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// newListed is a world whose first task never ends by itself; each task writes a file with its name.
func newListed(t *testing.T, tasks ...string) *world {
	t.Helper()
	w := newWorld(t, "", seldom)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo $TIDEWAITER_TASK > web/$TIDEWAITER_TASK.html; [ $TIDEWAITER_TASK != form ] || { ` + w.waitFor("never") + `}`
	})
	w.list(tasks...)
	return w
}

// list orders the tasks with these names.
func (w *world) list(names ...string) {
	w.intake.Order(func(o *protocol.Orders) {
		o.Tasks = nil
		for _, name := range names {
			o.Tasks = append(o.Tasks, protocol.Task{Name: name})
		}
	})
}

// atWork waits until the agent has written the file of a task.
func (w *world) atWork(task string) {
	w.t.Helper()
	w.eventually(task+" is worked on", func() bool {
		data, err := os.ReadFile(filepath.Join(w.paths.Workspace, "web", task+".html"))
		return err == nil && string(data) == task+"\n"
	})
}

// TestADroppedTaskEndsInOrder: a task that the orders do not list any more while its agent works on it ends after a checkpoint, and what follows is
// what the orders list, in their order.
func TestADroppedTaskEndsInOrder(t *testing.T) {
	t.Parallel()
	w := newListed(t, "form", "save")
	p := w.start(1, nil)
	w.atWork("form")
	w.list("mail", "save")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	for _, task := range []string{"form", "mail", "save"} { // what was written before the task was dropped breaks no rule
		if got := w.delivered("web/" + task + ".html"); got != task {
			t.Errorf("%s is delivered as %q", task, got)
		}
	}
	w.wantVerdicts("Task Valid Promoted", "Task Valid Promoted", "Final Valid Promoted")
	w.wantEveryCheckpointOnce()
}

// dropPoints are all steps of a drop after which a watchdog may end.
var dropPoints = []string{"agent exited", "captured", "intent journaled", "done journaled", "task dropped", "task begun"}

// TestACrashWhileATaskIsDropped: whatever step the watchdog ends after, the task is dropped once and the list is worked off.
func TestACrashWhileATaskIsDropped(t *testing.T) {
	t.Parallel()
	for name, list := range alternately(after(dropPoints...)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newListed(t, "form", "save")
			plugs := newPlugs(t)
			p := w.start(1, plugs.probe())
			w.atWork("form")
			plugs.add(list)
			w.list("save")
			wantFinal(t, plugs.processes(p).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantEveryCheckpointOnce()
		})
	}
}

// TestADropThatIsTakenBackAfterACrash: whatever step the watchdog ends after, the task begins again because it is listed again, as the last one.
func TestADropThatIsTakenBackAfterACrash(t *testing.T) {
	t.Parallel()
	w := newListed(t, "form")
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo $TIDEWAITER_TASK > web/$TIDEWAITER_TASK.html; [ $TIDEWAITER_TASK != form ] || { echo start >> "$HOME/starts"; ` + w.waitFor("end") + `}`
	})
	plugs := newPlugs(t)
	p := w.start(1, plugs.probe())
	for i, step := range dropPoints {
		w.eventually("form is worked on again", func() bool { return w.begun() == i+1 })
		plugs.add(after(step))
		other := fmt.Sprintf("save-%d", i)
		w.list(other)
		plugs.ended(w, p.wait())
		w.list(other, "form")
		p.watch(plugs.probe())
	}
	w.eventually("form is worked on at last", func() bool { return w.begun() == len(dropPoints)+1 })
	w.signal("end")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	for i := range dropPoints {
		if got := w.delivered(fmt.Sprintf("web/save-%d.html", i)); got != fmt.Sprintf("save-%d", i) {
			t.Errorf("task %d is delivered as %q", i, got)
		}
	}
	w.wantEveryCheckpointOnce()
}

// TestRemainsOfATaskThatIsNotListedAnyMore: what an agent wrote before its pod was lost is kept, although its task was taken off the list meanwhile.
func TestRemainsOfATaskThatIsNotListedAnyMore(t *testing.T) {
	t.Parallel()
	w := newListed(t, "form", "save")
	p := w.start(1, pullAt("captured", 1))
	w.atWork("form")
	p.kill()
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	w.list("save")
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if chain := w.trusted("rev-list", "--objects", protocol.RefChain); !strings.Contains(chain, "web/form.html") {
		t.Errorf("the chain does not have what the agent wrote (%q)", w.verdicts())
	}
	w.wantEveryCheckpointOnce()
}

// TestAnExitWithoutARecordOfItsStart: an agent that was started and ended while the journal had no record of its start has done its own task, and
// not the next one too.
func TestAnExitWithoutARecordOfItsStart(t *testing.T) {
	t.Parallel()
	w := newListed(t, "save", "mail")
	w.intake.Order(func(o *protocol.Orders) { o.Agent.Command[2] = `echo $TIDEWAITER_TASK > web/$TIDEWAITER_TASK.html` })
	started, pull := make(chan *pod, 1), pullAt("agent launched", 1)
	p := w.start(1, func(step string) error {
		err := pull(step)
		if err != nil { // not before the agent has ended
			agent := <-started
			w.atWork("save")
			w.eventually("the agent has ended", func() bool { return len(agent.view.Moving(t)) == 0 })
		}
		return err
	})
	started <- p
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	p.watch(pullAt("task begun", 1))
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	p.resume(false)
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	for _, task := range []string{"save", "mail"} {
		if got := w.delivered("web/" + task + ".html"); got != task {
			t.Errorf("%s is delivered as %q", task, got)
		}
	}
}
