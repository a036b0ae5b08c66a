// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// newProved is a world with one task and gates before the delivery, each a script.
func newProved(t *testing.T, agent string, scripts ...string) *world {
	t.Helper()
	w := newWorld(t, agent, seldom)
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Supervision.MaxCorrections = 2
		for i, script := range scripts {
			o.Delivery.Gates = append(o.Delivery.Gates, protocol.Gate{Name: fmt.Sprint("proof-", i), Command: []string{"/bin/sh", "-c", script}, Image: "i", Timeout: time.Minute})
		}
	})
	return w
}

// prove starts the pod of a gate: the trusted volume, and nothing else of the Feature.
func (w *world) prove(attempt int64, gate string, probe func(string) error) *pod {
	w.t.Helper()
	if gate == "" {
		w.t.Fatal("no gate is next")
	}
	paths := w.paths
	paths.Workspace, paths.Run, paths.Home = w.mkdir(fmt.Sprint("checkout-", attempt)), w.mkdir(fmt.Sprint("run-", attempt)), ""
	w.begin(attempt, protocol.RunGate)
	if err := w.prepared(attempt, paths); err != nil {
		w.t.Fatalf("prepare: %v", err)
	}
	p := &pod{w: w, attempt: attempt, paths: paths, gate: gate, gone: make(chan struct{})}
	p.begin(probe)
	return p
}

// proofs lists the gates before the delivery that ran, as the journal has them.
func (w *world) proofs() (all []string) {
	records, _ := w.recorded()
	for _, r := range records {
		if g := r.DeliveryGateRan; g != nil {
			all = append(all, fmt.Sprintf("%s %s %d", g.Gate, g.State, g.ExitCode))
		}
	}
	return all
}

func (w *world) wantProofs(want ...string) {
	w.t.Helper()
	if got := w.proofs(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("gates before the delivery ran: %q, want %q", got, want)
	}
}

// TestADeliveryIsProvedWhereNoAgentHasBeen: neither files that Git ignores nor the agent's home are there, every gate has a pod of its own, and
// only the last one delivers.
func TestADeliveryIsProvedWhereNoAgentHasBeen(t *testing.T) {
	w := newProved(t, `echo good > web/page.html; echo planted > web/x.log; echo planted > "$HOME/.profile"`,
		`grep -q good web/page.html && [ ! -e web/x.log ] && [ -z "$(ls -A "$HOME")" ] && [ -z "$(ls -A "$TMPDIR")" ] && [ -z "$TIDEWAITER_PROMPT" ] && echo mine > web/x.log`,
		`[ ! -e web/x.log ] && git rev-parse -q --verify HEAD`)
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
	if w.branch() != "" || !strings.Contains(f.Message, `gate "proof-0"`) {
		t.Errorf("branch %q, message %q", w.branch(), f.Message)
	}
	g := w.prove(2, f.Gate, nil).finish()
	wantFinal(t, g, protocol.OutcomeProving, protocol.ReasonProving)
	if w.branch() != "" || g.Gate == f.Gate {
		t.Errorf("branch %q, gates %q and %q", w.branch(), f.Gate, g.Gate)
	}
	wantFinal(t, w.prove(3, g.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantProofs("proof-0 Passed 0", "proof-1 Passed 0")
	if w.delivered("web/page.html") != "good" {
		t.Error("another page was delivered")
	}
	if list := w.answers(t, protocol.Inquiry{ID: "gates", Kind: protocol.InquiryGates, Task: "-"}); !strings.Contains(list, "proof-0") || !strings.Contains(list, "proof-1") {
		t.Errorf("features/gates says %s", list)
	}
	w.wantEveryCheckpointOnce()
}

// TestAnAgentCorrectsWhatDeliveryGatesFind: all gates run before an agent gets another task, which names what failed.
func TestAnAgentCorrectsWhatDeliveryGatesFind(t *testing.T) {
	t.Parallel()
	w := newProved(t, `case "$TIDEWAITER_INSTRUCTIONS" in *"exited with code 3"*) echo good > web/page.html;; *) echo bad > web/page.html;; esac
		echo "$TIDEWAITER_TASK" > web/task.html`, good, "true")
	f := w.start(1, nil).finish()
	f = w.prove(2, f.Gate, nil).finish()
	wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
	f = w.prove(3, f.Gate, nil).finish()
	wantFinal(t, f, protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
	w.wantProofs("proof-0 Failed 3", "proof-1 Passed 0")
	f = w.start(4, nil).finish()
	wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
	f = w.prove(5, f.Gate, nil).finish()
	wantFinal(t, w.prove(6, f.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if page, task := w.delivered("web/page.html"), w.delivered("web/task.html"); page != "good" || task != "delivery/gates/1" {
		t.Errorf("delivered %q of task %q", page, task)
	}
	w.wantEveryCheckpointOnce()
}

// TestDeliveryGatesThatKeepFailingBlock: when the corrections are spent, or a command cannot be started, a user decides. A retry runs the gate again.
func TestDeliveryGatesThatKeepFailingBlock(t *testing.T) {
	t.Parallel()
	w := newProved(t, `echo bad > web/page.html`, good)
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Supervision.MaxCorrections = 0 })
	f := w.start(1, nil).finish()
	f = w.prove(2, f.Gate, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	if !strings.Contains(f.Message, `gate "proof-0" exited with code 3`) {
		t.Errorf("message %q", f.Message)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.Gates[0].Command = []string{"no-such-program"} })
	f = w.start(3, nil).finish()
	wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
	f = w.prove(4, f.Gate, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateNotStarted)
	f = w.start(5, nil).finish()
	wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving) // it runs again, and the agent does not
	if w.branch() != "" || len(w.proofs()) != 2 {
		t.Errorf("branch %q, gates ran: %q", w.branch(), w.proofs())
	}
}

// TestNothingIsDeliveredWithoutItsProof: an approval, a seal run and a gate that a policy adds after the proof change nothing about that.
func TestNothingIsDeliveredWithoutItsProof(t *testing.T) {
	t.Parallel()
	w := newProved(t, `echo good > web/page.html`, good)
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.RequireApproval = true })
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = f.Head })
	wantFinal(t, w.seal(2), protocol.OutcomeProving, protocol.ReasonProving)
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = "" })
	f = w.prove(3, f.Gate, nil).finish()
	wantFinal(t, f, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	if f.ProvedBy == "" {
		t.Error("the report does not say by which gates the head is proved")
	}
	added := protocol.Gate{Name: "added", Command: []string{"false"}, Image: "i", Timeout: time.Minute}
	w.intake.Order(func(o *protocol.Orders) {
		o.Delivery.ApprovedCommit, o.Delivery.Gates = f.Head, append(o.Delivery.Gates, added)
	})
	f = w.seal(4)
	wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
	if f.Gate != gates.Sum(added) || w.branch() != "" {
		t.Errorf("gate %q is next, branch %q", f.Gate, w.branch())
	}
	w.wantProofs("proof-0 Passed 0")
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.Gates = o.Delivery.Gates[:1] })
	wantFinal(t, w.prove(5, f.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered) // its gate is not required any more
	w.wantProofs("proof-0 Passed 0")
}

// TestAWorkspaceRequestComesBeforeAProvedDelivery: the workspace is not in the pod of a gate, so the attempt ends for it.
func TestAWorkspaceRequestComesBeforeAProvedDelivery(t *testing.T) {
	t.Parallel()
	w := newProved(t, `echo good > web/page.html`, good)
	f := w.start(1, nil).finish()
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "keep", Kind: protocol.RequestCheckpoint}}
	})
	g := w.prove(2, f.Gate, nil).finish()
	wantFinal(t, g, protocol.OutcomeProving, protocol.ReasonProving)
	if w.branch() != "" {
		t.Error("delivered before the request")
	}
	wantFinal(t, w.seal(3), protocol.OutcomeProving, protocol.ReasonProving)
	w.intake.Order(func(o *protocol.Orders) { o.Requests = nil })
	wantFinal(t, w.prove(4, g.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantProofs("proof-0 Passed 0")
}

// TestAProofSurvivesCrashes: whatever the watchdog had done when it ended, the next one continues there, and no gate counts twice.
func TestAProofSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]plug{"the gate has a result": after("delivery gate ran", "task added"), "the gate has none": after("gate ended")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newProved(t, `echo bad > web/page.html; echo x >> web/pages.html`, good)
			f := w.start(1, nil).finish()
			plugs := newPlugs(t, list)
			f = plugs.processes(w.prove(2, f.Gate, plugs.probe())).finish()
			if plugs.last() == "gate ended" { // what it left in this pod could change a second run
				wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonCheckpointFailed)
				w.wantProofs()
				f = w.prove(3, f.Gate, nil).finish()
			}
			wantFinal(t, f, protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
			w.wantProofs("proof-0 Failed 3")
			records, _ := w.recorded()
			added := 0
			for _, r := range records {
				if r.TaskAdded != nil {
					added++
				}
			}
			if added != 1 || w.branch() != "" {
				t.Errorf("%d tasks added, branch %q", added, w.branch())
			}
		})
	}
}

// TestALostGatePodIsProvedAgain: a pod that is gone leaves no result, and a seal run says which gate is next.
func TestALostGatePodIsProvedAgain(t *testing.T) {
	t.Parallel()
	w := newProved(t, `echo good > web/page.html`, "echo run >> "+"MARKS"+"; sleep 100")
	w.intake.Order(func(o *protocol.Orders) {
		o.Delivery.Gates[0].Command[2] = strings.ReplaceAll(o.Delivery.Gates[0].Command[2], "MARKS", filepath.Join(w.dir, "gate-runs"))
	})
	f := w.start(1, nil).finish()
	p := w.prove(2, f.Gate, nil)
	w.eventually("the gate runs", func() bool { return w.runs() > 0 })
	p.kill()
	_ = p.wait()
	g := w.seal(3)
	wantFinal(t, g, protocol.OutcomeProving, protocol.ReasonProving)
	if len(w.proofs()) != 0 || g.Gate != f.Gate {
		t.Errorf("proofs %q, next %q", w.proofs(), g.Gate)
	}
}

// TestAnAddedTaskIsFollowedBeforeIntakeAnswers: the watchdog ends between the record of the task and the record of the orders with it, and the
// manager is away when it continues.
func TestAnAddedTaskIsFollowedBeforeIntakeAnswers(t *testing.T) {
	t.Parallel()
	w := newProved(t, `echo bad > web/page.html`, "")
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.Gates[0].Command[2] = w.marks() + good })
	f := w.start(1, nil).finish()
	p := w.prove(2, f.Gate, pullAt("task added", 1))
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	w.intake.Refuse(503)
	p.resume(false)
	w.eventually("the attempt ends", func() bool {
		records, _ := w.recorded()
		return records[len(records)-1].Final != nil
	})
	records, _ := w.recorded()
	added := 0
	for _, r := range records {
		if r.TaskAdded != nil {
			added++
		}
	}
	if added != 1 || w.runs() != 1 {
		t.Errorf("%d tasks added, the gate ran %d times", added, w.runs())
	}
}

// TestADeliveryGateHasOneTry: what a try that does not end in its time has written, captured or ignored, proves nothing.
func TestADeliveryGateHasOneTry(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"captured": "echo good > web/page.html; sleep 1000",
		"ignored":  "echo good > web/x.log; sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newProved(t, `echo bad > web/page.html`, "")
			w.intake.Order(func(o *protocol.Orders) {
				o.Delivery.Gates[0].Command[2] = w.marks() + "grep -qs good web/page.html web/x.log && exit 0; " + first
				o.Delivery.Gates[0].Timeout, o.Policy.Supervision.MaxCorrections = 2*time.Second, 0
			})
			f := w.start(1, nil).finish()
			f = w.prove(2, f.Gate, nil).finish()
			wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateFailed)
			if w.runs() != 1 || w.branch() != "" {
				t.Errorf("the gate ran %d times, branch %q", w.runs(), w.branch())
			}
		})
	}
}
