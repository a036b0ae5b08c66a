// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// proposed is a world whose first attempt has ended with a plan that waits for approval.
func proposed(t *testing.T) (w *world, player *provider.Server, hash string) {
	t.Helper()
	w, player = newPlanned(t, "anthropic", planOfTwo)
	w.intake.Order(func(o *protocol.Orders) { o.Planning = protocol.PlanningApprove })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomePlanProposed, protocol.ReasonPlanApprovalRequired)
	if got := w.tasks(); got != "" {
		t.Fatalf("before an approval the agent got %q", got)
	}
	return w, player, w.intake.Plans()[0].Hash
}

// planRequests are in the orders of an attempt.
func (w *world) planRequests(attempt int64, requests ...protocol.Request) {
	w.intake.Order(func(o *protocol.Orders) { o.Attempt, o.Requests = attempt, requests })
}

// TestAPlanWaitsForApproval: no agent starts before it. Another hash is refused, and the attempt ends again.
func TestAPlanWaitsForApproval(t *testing.T) {
	t.Parallel()
	w, player, hash := proposed(t)
	w.planRequests(2, protocol.Request{ID: "a1", Kind: protocol.RequestApprovePlan, Hash: strings.Repeat("0", 64)})
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomePlanProposed, protocol.ReasonPlanApprovalRequired)
	w.planRequests(3, protocol.Request{ID: "a2", Kind: protocol.RequestApprovePlan, Hash: hash})
	wantFinal(t, w.start(3, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got, want := w.tasks(), "page/form: Add the form.\npage/save: Save it."; got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
	results := w.results()
	if len(results) != 2 || results[0].OK || !strings.Contains(results[0].Message, hash) || !results[1].OK {
		t.Errorf("results %+v", results)
	}
	reported := w.intake.Plans()
	if last := reported[len(reported)-1]; !last.Approved || last.Hash != hash || plans.Hash(*last.Plan) != hash {
		t.Errorf("plans reported: %+v", reported)
	}
	if n := len(player.Recorded()); n != 1 {
		t.Errorf("%d questions, want 1", n)
	}
}

// TestAnApprovalOutlivesCrashes: it counts once, and its request has one answer.
func TestAnApprovalOutlivesCrashes(t *testing.T) {
	t.Parallel()
	w, player, hash := proposed(t)
	w.planRequests(2, protocol.Request{ID: "a1", Kind: protocol.RequestApprovePlan, Hash: hash})
	plugs := newPlugs(t, after("plan approval reported", "plan approved"))
	wantFinal(t, plugs.processes(w.start(2, plugs.probe())).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if results := w.results(); len(results) != 1 || !results[0].OK {
		t.Errorf("results %+v", results)
	}
	if n := len(player.Recorded()); n != 1 {
		t.Errorf("%d questions, want 1", n)
	}
}

// TestAWithdrawnApprovalDoesNotCount: a user withdraws it while no watchdog runs, and the manager is away when the watchdog starts.
func TestAWithdrawnApprovalDoesNotCount(t *testing.T) {
	t.Parallel()
	w, _, hash := proposed(t)
	w.planRequests(2, protocol.Request{ID: "a1", Kind: protocol.RequestApprovePlan, Hash: hash})
	if err := w.prepare(2); err != nil {
		t.Fatal(err)
	}
	w.planRequests(2)
	w.intake.Refuse(http.StatusServiceUnavailable)
	p := &pod{w: w, attempt: 2, paths: w.paths, gone: make(chan struct{})}
	p.begin(nil)
	w.eventually("the runner is connected", func() bool { return strings.Count(w.log.String(), "Runner connected") == 2 })
	w.intake.Refuse(0)
	wantFinal(t, p.finish(), protocol.OutcomePlanProposed, protocol.ReasonPlanApprovalRequired)
	if got := w.tasks(); got != "" || len(w.results()) > 0 {
		t.Errorf("the agent got %q, results %+v", got, w.results())
	}
}

// TestNothingBeginsWithoutAPlanToApprove: the attempt ends, and the next one asks again.
func TestNothingBeginsWithoutAPlanToApprove(t *testing.T) {
	t.Parallel()
	w, player := newPlanned(t, "openai-chat", "- text: I would do it in two steps.\n- text: As I said.")
	w.intake.Order(func(o *protocol.Orders) { o.Planning = protocol.PlanningApprove })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonPlannerUnavailable)
	w.intake.Order(func(o *protocol.Orders) {
		o.Attempt, o.Prompt = 2, strings.Replace(o.Prompt, "- text: I would do it in two steps.", planOfTwo, 1)
	})
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomePlanProposed, protocol.ReasonPlanApprovalRequired)
	if p := w.planned(); len(p) != 2 || p[0].Message == "" || p[1].Plan == nil || w.tasks() != "" {
		t.Errorf("plans in the journal %+v, tasks %q", p, w.tasks())
	}
	if n := len(player.Recorded()); n != 3 {
		t.Errorf("%d questions, want 3", n)
	}
}

// replanned is a world whose agent works on its first task while a user asks for another plan.
func replanned(t *testing.T, probe func(string) error) (*world, *pod) {
	t.Helper()
	// The planner begins with its first plan again, hears that a task of it is done, and proposes the other one.
	return replannedAs(t, probe, `- tool: {name: propose_plan, input: {milestones: [{name: page, tasks: [{name: list, instructions: List it.}]}], allowedAreas: ["web/*.html"]}}`)
}

// replannedAs is the same world with another second answer of the planner.
func replannedAs(t *testing.T, probe func(string) error, other string) (*world, *pod) {
	t.Helper()
	w, _ := newPlanned(t, "anthropic", planOfTwo+"\n"+other)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[len(o.Agent.Command)-1] = wroteTasks + "; " + w.waitFor("go")
	})
	run := w.start(1, probe)
	w.eventually("the agent works", func() bool { return strings.HasPrefix(w.tasks(), "page/form") })
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "r1", Kind: protocol.RequestReplan, Directive: "List instead of save."}}
	})
	return w, run
}

// TestAnotherPlanKeepsWhatIsDone: the task at hand ends first, and the request has its answer.
func TestAnotherPlanKeepsWhatIsDone(t *testing.T) {
	t.Parallel()
	w, run := replanned(t, nil)
	w.signal("go")
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got, want := w.tasks(), "page/form: Add the form.\npage/list: List it."; got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
	p := w.planned()
	if len(p) != 2 || p[1].Request != "r1" || plans.Tasks(*p[1].Plan) != 2 {
		t.Errorf("plans in the journal: %+v", p)
	}
	if results := w.results(); len(results) != 1 || !results[0].OK || !strings.Contains(results[0].Message, plans.Hash(*p[1].Plan)) {
		t.Errorf("results %+v", results)
	}
	var states []string
	for _, task := range w.intake.Status().Tasks {
		states = append(states, task.Name+" "+task.State)
	}
	if got, want := strings.Join(states, ", "), "page/form Done, page/list Done"; got != want {
		t.Errorf("tasks %s, want %s", got, want)
	}
}

// TestNoOtherPlan: the work continues by the plan before it. The request has an answer, and the history says why there is no other plan, also after a crash.
func TestNoOtherPlan(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]int{"nothing": 1, "before plan missing": 1, "plan missing": 2} { // then the watchdog asks the model again
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w, run := replannedAs(t, pullAt(step, 1), "- text: I would leave it as it is.")
			w.signal("go")
			if step != "nothing" {
				if err := run.wait(); !errors.Is(err, errPulled) {
					t.Fatalf("the watchdog ended with %v", err)
				}
				run.resume(false)
			}
			wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if got, want := w.tasks(), "page/form: Add the form.\npage/save: Save it."; got != want {
				t.Errorf("the agent got %q, want %q", got, want)
			}
			var missing []journal.PlanMissing
			records, _ := w.recorded()
			for _, r := range records {
				if r.PlanMissing != nil {
					missing = append(missing, *r.PlanMissing)
				}
			}
			results := w.results()
			if len(results) != 1 || results[0].OK || len(missing) != want || missing[0].Request != "r1" || missing[0].Message == "" || !strings.Contains(results[0].Message, missing[0].Message) {
				t.Errorf("results %+v, records %+v", results, missing)
			}
			w.wantHistory()
		})
	}
}

// TestAnotherPlanOutlivesCrashes: the newest plan in the journal is the one that is followed, also while the manager is away.
func TestAnotherPlanOutlivesCrashes(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"plan reported", "planned"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w, run := replanned(t, pullAt(step, 2))
			w.signal("go")
			if err := run.wait(); !errors.Is(err, errPulled) {
				t.Fatalf("the watchdog ended with %v", err)
			}
			if step == "planned" {
				w.intake.Refuse(http.StatusServiceUnavailable)
			}
			run.resume(false)
			w.eventually("the agent works on another task", func() bool { return strings.Contains(w.tasks(), "\n") })
			w.intake.Refuse(0)
			wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if got, want := w.tasks(), "page/form: Add the form.\npage/list: List it."; got != want {
				t.Errorf("the agent got %q, want %q", got, want)
			}
		})
	}
}
