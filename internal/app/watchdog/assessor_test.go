// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// rules is the policy of an assessor that looks when a milestone is complete, and whose model answers with a turn.
func rules(turn string) policy.Reviewer {
	return policy.Reviewer{Enabled: new(true), EveryTasks: 10, OnMilestone: true, Instructions: "```script give_verdict\nturns:\n" + turn + "\n```"}
}

// Verdicts of an assessor.
const (
	oneDrift = `- tool: {name: give_verdict, input: {verdict: MinorDrift, reason: Nothing tests the form., directive: {description: Test the form., path: web/form.html, line: 1, quote: page/form}}}`
	diverges = `- tool: {name: give_verdict, input: {verdict: MajorDivergence, reason: It is another app.}}`
)

// withAssessor besides the reviewer of code style.
func withAssessor(turn string) func(*protocol.Orders) {
	return func(o *protocol.Orders) { o.Policy.Reviewers.Assessor = rules(turn) }
}

// onlyAssessor looks at the work.
func onlyAssessor(turn string) func(*protocol.Orders) {
	return func(o *protocol.Orders) {
		withAssessor(turn)(o)
		o.Policy.Reviewers.CodeStyle.Enabled = new(false)
	}
}

// TestRExecTheAssessorLooksAfterTheReviewers: it sees what they have found, its directive is given once, and the agent polishes the work.
func TestRExecTheAssessorLooksAfterTheReviewers(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, oneFinding, withAssessor(oneDrift))
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	want := []string{
		"page/form MinorDrift CodeStyle Cleanup web/form.html", "page/save Aligned Known", "page/save MinorDrift Assessor Functional web/form.html",
		"list/show Aligned Known",
	}
	if diff := cmp.Diff(want, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(polished, w.tasks()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	asked := player.Recorded()
	if len(asked) != 4 || !strings.Contains(asked[2].Body, "give_verdict") || !strings.Contains(asked[2].Body, "- CodeStyle, Aligned: Code style review:") {
		t.Errorf("%d questions: %+v", len(asked), asked)
	}
	s := w.intake.Status()
	if i := len(s.Reviews) - 2; i < 0 || s.Reviews[i].Summary != "Assessor review: the work drifts, 1 functional directive. Nothing tests the form." {
		t.Errorf("reviews in the status: %+v", s.Reviews)
	}
}

// TestRDegrAnAssessorThatIsAway: the watchdog skips it, and asks it again at the next breakpoint.
func TestRDegrAnAssessorThatIsAway(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, oneFinding, onlyAssessor("- text: All is well."))
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"page/save Skipped", "list/show Skipped"}, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

// TestADivergenceWithoutPlanning: a user decides. What is done stays, and a retry continues by the plan as it is.
func TestADivergenceWithoutPlanning(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, oneFinding, onlyAssessor(diverges))
	for attempt, tasks := range []string{"page/form: Add the form.\npage/save: Save it.", "page/form: Add the form.\npage/save: Save it.\nlist/show: Show all."} {
		final := w.start(int64(attempt+1), nil).finish()
		wantFinal(t, final, protocol.OutcomeBlocked, protocol.ReasonPlanDiverged)
		if !strings.Contains(final.Message, "the work diverges from the request or the plan: It is another app. The work so far is kept. Change spec.plan") {
			t.Errorf("message %q", final.Message)
		}
		if got := w.tasks(); got != tasks {
			t.Errorf("the agent got %q, want %q", got, tasks)
		}
	}
	wantFinal(t, w.start(3, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/show.html"); got != "list/show" {
		t.Errorf("delivered %q", got)
	}
	if diff := cmp.Diff([]string{"page/save MajorDivergence", "list/show MajorDivergence"}, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

// TestADivergenceOutlivesCrashes: the plan for it is made once, and what is done stays. The second divergence leads to no plan that can be used, and a user
// decides.
func TestADivergenceOutlivesCrashes(t *testing.T) {
	t.Parallel()
	const first = `- tool: {name: propose_plan, input: {milestones: [{name: page, tasks: [{name: form, instructions: Add the form.}]}, {name: list, tasks: [{name: show, instructions: Show all.}]}]}}`
	const other = `- tool: {name: propose_plan, input: {milestones: [{name: page, tasks: [{name: save, instructions: Save it.}]}]}}`
	w, player := newReviewed(t, oneFinding, onlyAssessor(diverges), func(o *protocol.Orders) {
		o.Planning, o.Tasks = protocol.PlanningAuto, []protocol.Task{{Name: "login"}}
		o.Prompt = "Add a login page.\n```script propose_plan\nturns:\n" + first + "\n" + other + "\n```\n"
	})
	plugs := newPlugs(t, after("reviewed", "plan reported", "directives of reviewers", "plan missing"))
	final := plugs.processes(w.start(1, plugs.probe())).finish()
	wantFinal(t, final, protocol.OutcomeBlocked, protocol.ReasonPlanDiverged)
	if !strings.Contains(final.Message, "no model has proposed another plan that can be used: ") {
		t.Errorf("message %q", final.Message)
	}
	if got, want := w.tasks(), "page/form: Add the form.\npage/save: Save it."; got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"page/form MajorDivergence", "page/save MajorDivergence"}, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	p := w.planned()
	if len(p) != 2 || p[1].Request != "assessor/1" {
		t.Errorf("plans in the journal: %+v", p)
	}
	told := 0
	for _, q := range player.Recorded() {
		if strings.Contains(q.Body, "WHAT MUST BE DIFFERENT") { // as a user says it
			t.Errorf("the planner reads %s", q.Body)
		}
		if strings.Contains(q.Body, "WHAT THE ASSESSOR SAYS") && strings.Contains(q.Body, "| It is another app.") {
			told++
		}
	}
	if told != 8 { // two tries for each divergence, and in another process again: the journal did not have the first plan yet
		t.Errorf("the planner reads %d times what the assessor says", told)
	}
	if results := w.results(); len(results) != 0 {
		t.Errorf("results of requests that no user has sent: %+v", results)
	}
	w.wantHistory()
}
