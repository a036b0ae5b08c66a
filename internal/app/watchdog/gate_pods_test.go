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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/gates/toolreport"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// newPods is a world with one task and gates after it, each in a pod of its own.
func newPods(t *testing.T, agent string, scripts ...string) *world {
	t.Helper()
	w := newGated(t, agent, scripts...)
	w.intake.Order(func(o *protocol.Orders) { o.GatePods = true })
	return w
}

// wantNext holds that an attempt ended for a gate of the task login.
func (w *world) wantNext(f protocol.FinalReport, gate string) {
	w.t.Helper()
	wantFinal(w.t, f, protocol.OutcomeProving, protocol.ReasonProving)
	if f.Task != "login" || !strings.Contains(f.Message, fmt.Sprintf("gate %q of task %q", gate, "login")) {
		w.t.Errorf("task %q, message %q, want gate %s", f.Task, f.Message, gate)
	}
	if w.branch() != "" {
		w.t.Error("something was pushed")
	}
}

// begun counts the starts of an agent that marks them in its home.
func (w *world) begun() int {
	data, _ := os.ReadFile(filepath.Join(w.paths.Home, "starts"))
	return strings.Count(string(data), "\n")
}

// TestAGateOfADeterministicTaskWritesItsReport: the agent works by patches, and the gate writes to a checkout of its own.
func TestAGateOfADeterministicTaskWritesItsReport(t *testing.T) {
	w := agentByHand(t, func(o *protocol.Orders) {
		o.GatePods = true
		o.Tasks[0].Gates = []string{"unit"}
		o.Gates = []protocol.Gate{{Name: "unit", Timeout: time.Minute, MinTests: 2, Report: &protocol.GateReport{Format: protocol.ReportJUnit, Path: "build/report.xml"},
			Command: []string{"/bin/sh", "-c", `grep -q good web/page.html && mkdir -p build && echo "<testsuite><testcase name='a'/><testcase name='b'/></testsuite>" > build/report.xml`}}}
	})
	p := w.start(1, nil)
	c := w.connect()
	if a := c.patch("op1", newFile("web/page.html", "good")); a.Status != "applied" {
		t.Errorf("patch %+v", a)
	}
	c.complete()
	w.signal("exit")
	f := p.finish()
	w.wantNext(f, "unit")
	wantFinal(t, w.prove(2, f.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.gateResults(); len(got) != 1 || !cmp.Equal(got[0].Report, &toolreport.Summary{Tests: 2}) {
		t.Errorf("results %+v", got)
	}
	if _, err := os.Stat(filepath.Join(w.paths.Workspace, "build")); err == nil {
		t.Error("the gate wrote to the workspace")
	}
	if got := w.delivered("web/page.html"); got != "good" {
		t.Errorf("delivered %q", got)
	}
	if list := w.answers(t, protocol.Inquiry{ID: "gates", Kind: protocol.InquiryGates}); !strings.Contains(list, "login  unit  Passed") {
		t.Errorf("features/gates says %s", list)
	}
	w.wantEveryCheckpointOnce()
}

// TestAGateInAPodIsCorrected: every gate has a pod, nothing that the agent left in ignored files and in its home is there, and the agent hears of all
// failures at once.
func TestAGateInAPodIsCorrected(t *testing.T) {
	t.Parallel()
	w := newPods(t, mends+`; echo planted > web/x.log`, `[ ! -e web/x.log ] && [ -z "$(ls -A "$HOME")" ] || exit 9; echo mine > web/x.log; `+good, `[ ! -e web/x.log ]`)
	f := w.start(1, nil).finish()
	w.wantNext(f, "gate-0")
	f = w.prove(2, f.Gate, nil).finish()
	w.wantNext(f, "gate-1")
	f = w.prove(3, f.Gate, nil).finish()
	wantFinal(t, f, protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
	f = w.start(4, nil).finish()
	w.wantNext(f, "gate-0")
	f = w.prove(5, f.Gate, nil).finish()
	w.wantNext(f, "gate-1")
	wantFinal(t, w.prove(6, f.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantRan("gate-0 Failed 3", "gate-1 Passed 0", "gate-0 Passed 0", "gate-1 Passed 0")
	if got := w.delivered("web/page.html"); got != "good" || w.begun() != 2 {
		t.Errorf("delivered %q after %d starts", got, w.begun())
	}
	w.wantEveryCheckpointOnce()
}

// TestCorrectionsAfterGatesInPodsEnd: each correction is in another attempt than the one before it, and their number is bounded all the same. A user who
// retries has the gate run again, and the agent corrected again.
func TestCorrectionsAfterGatesInPodsEnd(t *testing.T) {
	t.Parallel()
	w := newPods(t, `echo start >> "$HOME/starts"; echo bad >> web/page.html`, good)
	attempt := int64(0)
	round := func() protocol.FinalReport {
		f := w.start(attempt+1, nil).finish()
		w.wantNext(f, "gate-0")
		f = w.prove(attempt+2, f.Gate, nil).finish()
		attempt += 2
		return f
	}
	for range 2 {
		wantFinal(t, round(), protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
	}
	f := round()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	if !strings.Contains(f.Message, `gate "gate-0" exited with code 3`) || w.begun() != 3 || len(w.ran()) != 3 {
		t.Errorf("message %q after %d starts and %q", f.Message, w.begun(), w.ran())
	}
	wantFinal(t, round(), protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
	if w.begun() != 3 || len(w.ran()) != 4 {
		t.Errorf("after a retry: %d starts, gates ran %q", w.begun(), w.ran())
	}
}

// TestFailuresOfTheAgentBringNoCorrections: an agent that fails in each attempt which corrects its work, or has its model calls fail, does not work for
// ever between its failures.
func TestFailuresOfTheAgentBringNoCorrections(t *testing.T) {
	t.Parallel()
	w := newPods(t, `echo start >> "$HOME/starts"; echo bad >> web/page.html; [ $(($(wc -l < "$HOME/starts") % 2)) = 1 ]`, good)
	f := w.start(1, nil).finish()
	for attempt := int64(2); f.Outcome != protocol.OutcomeBlocked; attempt++ {
		switch {
		case attempt > 12:
			t.Fatalf("%d starts of the agent, and gates ran %q", w.begun(), w.ran())
		case f.Outcome == protocol.OutcomeProving:
			f = w.prove(attempt, f.Gate, nil).finish()
		default:
			f = w.start(attempt, nil).finish()
		}
	}
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	if w.begun() != 5 || len(w.ran()) != 3 {
		t.Errorf("%d starts of the agent, and gates ran %q", w.begun(), w.ran())
	}
}

// TestAGateInAPodHasOneTry: what a try that does not end in its time has written could let another one pass.
func TestAGateInAPodHasOneTry(t *testing.T) {
	t.Parallel()
	w := newPods(t, `echo good > web/page.html`, "")
	w.marking("sleep 1000")
	w.intake.Order(func(o *protocol.Orders) {
		o.Gates[0].Timeout, o.Policy.Supervision.MaxCorrections = 2*time.Second, 0
	})
	f := w.start(1, nil).finish()
	w.wantNext(f, "gate-0")
	f = w.prove(2, f.Gate, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	if !strings.Contains(f.Message, "did not end within its timeout") || w.runs() != 1 || w.branch() != "" {
		t.Errorf("message %q after %d runs, branch %q", f.Message, w.runs(), w.branch())
	}
}

// TestAGateInAPodThatCannotStart blocks the Feature, and runs again after a retry.
func TestAGateInAPodThatCannotStart(t *testing.T) {
	t.Parallel()
	w := newPods(t, `echo start >> "$HOME/starts"; echo good > web/page.html`, "no-such-program-here")
	f := w.start(1, nil).finish()
	wantFinal(t, w.prove(2, f.Gate, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonGateNotStarted)
	w.intake.Order(func(o *protocol.Orders) { o.Gates[0].Command = []string{"true"} })
	f = w.start(3, nil).finish()
	w.wantNext(f, "gate-0")
	wantFinal(t, w.prove(4, f.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.begun() != 1 {
		t.Errorf("the agent was started %d times", w.begun())
	}
}

// TestTasksContinueAfterGatesInPods: an agent starts with the next task, and an aborted one is taken back by the attempt that has the workspace.
func TestTasksContinueAfterGatesInPods(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"done": "true", "aborted": "[ ! -e web/one.html ]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPods(t, `echo page > web/$TIDEWAITER_TASK.html`, script)
			w.intake.Order(func(o *protocol.Orders) {
				o.Policy.Supervision.MaxCorrections = 0
				o.Tasks = []protocol.Task{{Name: "one", Gates: []string{"gate-0"}, Continue: true}, {Name: "two", Gates: []string{"gate-0"}}}
			})
			f := w.start(1, nil).finish()
			wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
			f = w.prove(2, f.Gate, nil).finish()
			wantFinal(t, f, protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
			f = w.start(3, nil).finish()
			wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
			if f.Task != "two" {
				t.Errorf("a gate of task %q", f.Task)
			}
			wantFinal(t, w.prove(4, f.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			want := map[string]string{"done": "web/one.html\nweb/two.html", "aborted": "web/two.html"}[name]
			if got := w.git("-C", w.origin, "diff", "--name-only", "main", "tidewaiter/login"); got != want {
				t.Errorf("the delivery changes %q", got)
			}
			w.wantEveryCheckpointOnce()
		})
	}
}

// TestGatesInPodsSurviveCrashes: whatever the watchdog of the agent or of a gate had done when it ended, the next one continues there.
func TestGatesInPodsSurviveCrashes(t *testing.T) {
	t.Parallel()
	for name, gates := range map[string][]plug{"the gate has a result": after("gate ran", "final journaled"), "the gate has none": after("gate ended")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPods(t, mends, good)
			plugs := newPlugs(t, after("done journaled", "task proving", "final journaled", "final spooled"))
			f := plugs.processes(w.start(1, plugs.probe())).finish()
			w.wantNext(f, "gate-0")
			plugs.add(gates)
			f = plugs.processes(w.prove(2, f.Gate, plugs.probe())).finish()
			if plugs.last() == "gate ended" { // what it left in this pod could change a second run
				wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonCheckpointFailed)
				if f.Task != "login" {
					t.Errorf("task %q", f.Task)
				}
				w.wantRan()
				f = w.prove(3, f.Gate, nil).finish()
			}
			wantFinal(t, f, protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
			if w.begun() != 1 {
				t.Errorf("the agent was started %d times", w.begun())
			}
			w.wantRan("gate-0 Failed 3")
		})
	}
}

// TestALostPodOfAGateOfATask: a seal run says which gate is next, and an attempt that finds all results continues without it.
func TestALostPodOfAGateOfATask(t *testing.T) {
	t.Parallel()
	w := newPods(t, mends, "")
	w.marking("[ $(wc -l < " + filepath.Join(w.dir, "gate-runs") + ") -gt 1 ] || sleep 1000; " + good)
	f := w.start(1, nil).finish()
	p := w.prove(2, f.Gate, nil)
	w.eventually("the gate runs", func() bool { return w.runs() > 0 })
	p.kill()
	_ = p.wait()
	g := w.seal(3)
	w.wantNext(g, "gate-0")
	if g.Gate != f.Gate || len(w.ran()) != 0 {
		t.Errorf("next %q, gates ran %q", g.Gate, w.ran())
	}
	p = w.prove(4, g.Gate, pullAt("gate ran", 1))
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	p.kill()
	wantFinal(t, w.seal(5), protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
	f = w.start(6, nil).finish()
	w.wantNext(f, "gate-0")
	if w.begun() != 2 {
		t.Errorf("the agent was started %d times", w.begun())
	}
	p = w.prove(7, f.Gate, pullAt("gate ran", 1))
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	p.kill()
	wantFinal(t, w.seal(8), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantRan("gate-0 Failed 3", "gate-0 Passed 0")
}

// TestOrdersReachAGateInItsPod: a gate that is not required any more is called off, and what it changed is in no checkpoint.
func TestOrdersReachAGateInItsPod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order           func(*protocol.Orders)
		outcome, reason string
	}{
		"suspend": {func(o *protocol.Orders) { o.Suspend = true }, protocol.OutcomeSuspended, protocol.ReasonSuspended},
		"drop":    {func(o *protocol.Orders) { o.Tasks = []protocol.Task{{Name: "another"}} }, protocol.OutcomeUnfinished, protocol.ReasonCorrecting},
		"remove":  {func(o *protocol.Orders) { o.Tasks[0].Gates, o.Gates = nil, nil }, protocol.OutcomeDelivered, protocol.ReasonDelivered},
		"change":  {func(o *protocol.Orders) { o.Gates[0].Command = []string{"true"} }, protocol.OutcomeProving, protocol.ReasonProving},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPods(t, `echo $TIDEWAITER_TASK >> web/page.html`, "")
			w.marking("echo spoilt > web/spoilt.html; sleep 1000")
			f := w.start(1, nil).finish()
			p := w.prove(2, f.Gate, nil)
			w.eventually("the gate runs", func() bool { return w.runs() > 0 })
			w.intake.Order(c.order)
			g := p.finish()
			wantFinal(t, g, c.outcome, c.reason)
			w.intake.Order(func(o *protocol.Orders) { o.Suspend = false })
			switch name {
			case "suspend":
				w.wantNext(w.start(3, nil).finish(), "gate-0")
			case "drop":
				wantFinal(t, w.start(3, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			case "change":
				if g.Gate == f.Gate || g.Task != "login" {
					t.Errorf("gate %q of task %q is next", g.Gate, g.Task)
				}
				wantFinal(t, w.prove(3, g.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			}
			if chain := w.trusted("rev-list", "--objects", protocol.RefChain); strings.Contains(chain, "spoilt") {
				t.Error("what the gate wrote is in a checkpoint")
			}
			w.wantEveryCheckpointOnce()
		})
	}
}

// TestARollbackBetweenGatesOfATask: it comes before the next gate, and the agent continues with the task.
func TestARollbackBetweenGatesOfATask(t *testing.T) {
	t.Parallel()
	w := newPods(t, `echo start >> "$HOME/starts"; wc -l < "$HOME/starts" > web/page.html`, "true", "true")
	w.intake.Order(func(o *protocol.Orders) { o.Tasks = append([]protocol.Task{{Name: "first"}}, o.Tasks...) })
	f := w.start(1, nil).finish()
	w.wantNext(f, "gate-0")
	w.wantNext(w.prove(2, f.Gate, nil).finish(), "gate-1")
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "back", Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: protocol.RollbackFull, Checkpoint: 1}}}
	})
	wantFinal(t, w.seal(3), protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
	w.intake.Order(func(o *protocol.Orders) { o.Requests = nil })
	f = w.start(4, nil).finish()
	w.wantNext(f, "gate-0")
	if w.begun() != 3 {
		t.Errorf("the agent was started %d times", w.begun())
	}
}
