// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// says is the script of a reviewer whose model answers with a turn.
func says(turn string) string { return "```script report_findings\nturns:\n" + turn + "\n```" }

// oneFinding is in a file that the first task writes.
const oneFinding = `- tool: {name: report_findings, input: {summary: The form has another name., findings: [{path: web/form.html, line: 1, quote: page/form, rule: naming, description: Name it like the others, priority: Low}]}}`

// newReviewed is a world with three tasks of two milestones, in which the reviewer of code style plays a script after each task.
func newReviewed(t *testing.T, turn string, change ...func(*protocol.Orders)) (*world, *provider.Server) {
	t.Helper()
	w := newWorld(t, wroteTasks, append([]func(*protocol.Orders){seldom, func(o *protocol.Orders) {
		o.Tasks = []protocol.Task{{Name: "page/form", Instructions: "Add the form."}, {Name: "page/save", Instructions: "Save it."}, {Name: "list/show", Instructions: "Show all."}}
		o.Policy.Reviewers = policy.Reviewers{UrgencyThreshold: 100, MaxDirectives: 3, PolishTasks: 10,
			CodeStyle: policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: says(turn)}}
	}}, change...)...)
	return w, w.serveSupervisor("anthropic")
}

// reviews in the journal, one "task outcome directives" each.
func (w *world) reviews() (all []string) {
	records, _ := w.recorded()
	for _, r := range records {
		if v := r.Reviewed; v != nil {
			ids := make([]string, 0, len(v.Directives))
			for _, d := range v.Directives {
				ids = append(ids, d.Source+" "+d.Type+" "+strings.Join(d.Files, ","))
			}
			for _, d := range v.Discarded {
				ids = append(ids, string(d.Reason))
			}
			all = append(all, strings.TrimSpace(v.Task+" "+v.Outcome+" "+strings.Join(ids, " ")))
		}
	}
	return all
}

const polished = "page/form: Add the form.\npage/save: Save it.\nlist/show: Show all.\ndelivery/polish/1: The work is done. Address each directive of ACTIVE DIRECTIVES, or explain why it does not apply. Change nothing else, and keep what the work does as it is."

// TestRExecAReviewerLooksBetweenTasks: what it finds is a directive once, its interval doubles when it finds nothing new, and the agent polishes the work
// at the end.
func TestRExecAReviewerLooksBetweenTasks(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, oneFinding)
	wantFinal(t, w.receives(protocol.SourceCodeStyle, "delivery/polish/1").finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"page/form MinorDrift CodeStyle Cleanup web/form.html", "page/save Aligned Known"}, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(polished, w.tasks()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	records, _ := w.recorded()
	for _, r := range records { // work that is done does not wait for an answer
		if b := r.TaskBegun; b != nil && (b.Policy.Questions.Asking == policy.AskGuess) != protocol.Polishes(b.Name) {
			t.Errorf("task %s began with %+v", b.Name, b.Policy.Questions)
		}
	}
	if diff := cmp.Diff([]string{"reviewed page/form", "reviewed page/save", "delivery/polish/1", "Active"}, w.received(protocol.SourceCodeStyle)); diff != "" {
		t.Errorf("when the agent got the directive (-want +got):\n%s", diff)
	}
	asked := player.Recorded()
	if len(asked) != 2 || !strings.Contains(asked[1].Body, "Name it like the others (web/form.html:1).") {
		t.Errorf("a reviewer does not see the directive that waits: %d questions", len(asked))
	}
	if len(asked) != 2 || strings.Contains(asked[0].Body, `\n\u003clast `) || !strings.Contains(asked[1].Body, "- After the task page/form: Code style review: 1 inconsistency, 1 cleanup directive. The form has another name.") {
		t.Errorf("a reviewer does not see what its last review said: %d questions", len(asked))
	}
	if len(asked) != 2 || !strings.Contains(asked[0].Body, "page/form") || strings.Contains(asked[1].Body, "web/form.html (Added)") || !strings.Contains(asked[1].Body, "web/save.html (Added)") {
		t.Errorf("%d questions: %+v", len(asked), asked)
	}
	s := w.intake.Status()
	if len(s.Reviews) != 2 || s.Reviews[0].Reviewer != protocol.SourceCodeStyle || s.Reviews[0].Directives != 1 || !strings.Contains(s.Reviews[0].Summary, "The form has another name.") {
		t.Errorf("reviews in the status: %+v", s.Reviews)
	}
	i := slices.IndexFunc(s.Directives, func(d protocol.DirectiveStatus) bool { return d.Source == protocol.SourceCodeStyle })
	if i < 0 || s.Directives[i].Description != "Name it like the others (web/form.html:1)." || s.Directives[i].State != protocol.DirectiveActive {
		t.Errorf("directives in the status: %+v", s.Directives)
	}
}

// TestRDirANormalDirectiveDoesNotWait: the agent gets it with its next task.
func TestRDirANormalDirectiveDoesNotWait(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, "- text: nothing", func(o *protocol.Orders) {
		o.Policy.Reviewers.CodeStyle.Enabled = nil
		o.Policy.Reviewers.Design = policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: says(strings.Replace(oneFinding, "priority: Low", "priority: Normal", 1))}
	})
	wantFinal(t, w.receives(protocol.SourceDesign, "page/save").finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"reviewed page/form", "Active", "reviewed page/save", "delivery/polish/1"}, w.received(protocol.SourceDesign)); diff != "" {
		t.Errorf("when the agent got the directive (-want +got):\n%s", diff)
	}
}

// receives starts a watchdog whose agent stays in a task until it has a directive of a reviewer: what it has on its standard input counts only while it runs.
func (w *world) receives(reviewer, task string) *pod {
	w.t.Helper()
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[len(o.Agent.Command)-1] += `; if [ "$TIDEWAITER_TASK" = ` + task + ` ]; then ` + w.waitFor("received") + `fi`
	})
	p := w.start(1, nil)
	w.eventually("the agent has a directive", func() bool {
		return slices.ContainsFunc(w.intake.Status().Directives, func(d protocol.DirectiveStatus) bool {
			return d.Source == reviewer && d.State == protocol.DirectiveActive
		})
	})
	w.signal("received")
	return p
}

// received is when the agent first got a directive of a reviewer, among reviews and polish tasks.
func (w *world) received(reviewer string) (all []string) {
	records, _ := w.recorded()
	got := false
	for _, r := range records {
		switch {
		case r.Reviewed != nil:
			all = append(all, "reviewed "+r.Reviewed.Task)
		case r.TaskBegun != nil && protocol.Polishes(r.TaskBegun.Name):
			all = append(all, r.TaskBegun.Name)
		case r.Directed != nil:
			for _, e := range r.Directed.Entries {
				if e.Source == reviewer && e.State == protocol.DirectiveActive && !got {
					all, got = append(all, e.State), true
				}
			}
		}
	}
	return all
}

// TestRDegrAReviewThatIsSkipped: the work continues, and the next breakpoint asks again.
func TestRDegrAReviewThatIsSkipped(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, "- text: I like it.")
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"page/form Skipped", "page/save Skipped", "list/show Skipped"}, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	if n := len(player.Recorded()); n != 6 {
		t.Errorf("%d questions", n)
	}
	if r := w.intake.Status().Reviews; len(r) != 3 || !strings.Contains(r[2].Summary, "There is no call of report_findings") {
		t.Errorf("reviews in the status: %+v", r)
	}
}

// answersReviewers serves a gateway that answers question number n of reviewers, from 0, in the dialect Messages.
func (w *world) answersReviewers(answer func(rw http.ResponseWriter, n int)) (asked *atomic.Int64) {
	w.t.Helper()
	asked = &atomic.Int64{}
	w.serveGateway(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			tunnel(rw, r.Host)
		case r.Header.Get(dialect.RoleHeader) != policy.RoleSupervisor:
			http.NotFound(rw, r)
		default:
			answer(rw, int(asked.Add(1))-1)
		}
	}))
	return asked
}

// TestRDegrAReviewOverBudget is skipped at once, and users read who can raise the budget. The work does not wait for that.
func TestRDegrAReviewOverBudget(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, oneFinding)
	asked := w.answersReviewers(func(rw http.ResponseWriter, _ int) {
		rw.Header().Set(protocol.ReasonHeader, protocol.ReasonBudgetExceeded)
		rw.WriteHeader(http.StatusServiceUnavailable)
		_, _ = rw.Write([]byte(`{"type":"error","error":{"type":"api_error","message":"tidewaiter: the Feature has 0.10 of 5 left; raise spec.budget.maxCost of the Feature"}}`))
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"page/form Skipped", "page/save Skipped", "list/show Skipped"}, w.reviews()); diff != "" || asked.Load() != 3 {
		t.Errorf("%d questions, reviews (-want +got):\n%s", asked.Load(), diff)
	}
	const want = "the model has not answered (try 1): 503 Service Unavailable: tidewaiter: the Feature has 0.10 of 5 left; raise spec.budget.maxCost of the Feature"
	if r := w.intake.Status().Reviews; len(r) != 3 || r[0].Summary != want {
		t.Errorf("reviews in the status: %+v", r)
	}
}

// TestRDegrAModelThatStaysAway delays the work once: later reviews do not wait until it answers.
func TestRDegrAModelThatStaysAway(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, oneFinding)
	asked := w.answersReviewers(func(rw http.ResponseWriter, n int) {
		switch n {
		case 0:
			rw.Header().Set("Retry-After", "3600") // longer than a review waits
			rw.WriteHeader(http.StatusTooManyRequests)
		case 1:
			rw.WriteHeader(http.StatusServiceUnavailable)
		default:
			rw.Header().Set("Content-Type", "application/json")
			_, _ = rw.Write([]byte(`{"type":"message","role":"assistant","model":"large","content":[{"type":"tool_use","id":"t","name":"report_findings","input":{"summary":"Fine.","findings":[]}}],"stop_reason":"tool_use"}`))
		}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"page/form Skipped", "page/save Skipped", "list/show Aligned"}, w.reviews()); diff != "" || asked.Load() != 3 {
		t.Errorf("%d questions, reviews (-want +got):\n%s", asked.Load(), diff)
	}
}

// TestAnUnheededReviewer looks when a milestone is complete, and not after each task as its policy says.
func TestAnUnheededReviewer(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, oneFinding, func(o *protocol.Orders) { o.Unheeded = []string{protocol.SourceCodeStyle} })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"page/save MinorDrift CodeStyle Cleanup web/form.html", "list/show Aligned Known"}, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

// TestRCostReviewersCostNothingUnlessAsked: without a word of a policy, no model is asked and nothing is journaled.
func TestRCostReviewersCostNothingUnlessAsked(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, oneFinding, func(o *protocol.Orders) { o.Policy.Reviewers.CodeStyle.Enabled = nil })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	_, state := w.recorded()
	if reviews, n := w.reviews(), len(player.Recorded()); len(reviews) != 0 || n != 0 || state.Reviews != nil || state.Found != nil || len(w.intake.Status().Reviews) != 0 {
		t.Errorf("reviews %q, %d questions, %+v", reviews, n, state.Reviews)
	}
}

// TestRStateAReviewOutlivesCrashes: what is journaled is not asked again, and each directive is given once.
func TestRStateAReviewOutlivesCrashes(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, oneFinding)
	plugs := newPlugs(t, after("reviewed", "directives of reviewers", "task added"))
	wantFinal(t, plugs.processes(w.start(1, plugs.probe())).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"page/form MinorDrift CodeStyle Cleanup web/form.html", "page/save Aligned Known"}, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(polished, w.tasks()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if n := len(player.Recorded()); n != 2 {
		t.Errorf("%d questions, want 2", n)
	}
	records, _ := w.recorded()
	if n := len(slices.DeleteFunc(records, func(r journal.Record) bool { return r.TaskAdded == nil })); n != 1 {
		t.Errorf("%d tasks were added", n)
	}
}

// TestAReviewerIsCalledOff: who suspends a Feature does not wait for a provider that is away.
func TestAReviewerIsCalledOff(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, "- {text: Hm., delay: 10m}")
	run := w.start(1, nil)
	w.eventually("the reviewer was asked", func() bool { return len(player.Recorded()) > 0 })
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, run.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
	if r := w.reviews(); len(r) != 0 {
		t.Errorf("reviews in the journal: %q", r)
	}
}

// TestOrdersDuringAReview: a directive that a user gives meanwhile is given, and never taken back.
func TestOrdersDuringAReview(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, strings.Replace(oneFinding, "- tool:", "- delay: 2s\n  tool:", 1))
	run := w.start(1, nil)
	w.eventually("the reviewer was asked", func() bool { return len(player.Recorded()) > 0 })
	w.intake.Order(func(o *protocol.Orders) {
		o.Directives = []protocol.Directive{{ID: "mine", Source: protocol.SourcePerson, Description: "Use the new form."}}
	})
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	records, _ := w.recorded()
	var states []string
	for _, r := range records {
		if r.Directed == nil {
			continue
		}
		for _, e := range r.Directed.Entries {
			if e.ID == "mine" {
				states = append(states, e.State)
			}
		}
	}
	if len(states) == 0 || states[0] != protocol.DirectivePending || slices.Contains(states, protocol.DirectiveDropped) {
		t.Errorf("states of the user's directive: %q", states)
	}
}

// TestTheTreeOfTheLastLookIsGone: a repository keeps no tree for reviewers. One that cannot compare with what it saw last sees everything again.
func TestTheTreeOfTheLastLookIsGone(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, oneFinding)
	run := w.start(1, pullAt("reviewed", 1))
	if err := run.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	j, err := trusted.OpenJournal(trusted.Dir(w.paths.Trusted), 1<<30, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	gone := journal.Reviewed{Reviewer: protocol.SourceCodeStyle, Task: "page/form", Over: 1, Tree: strings.Repeat("1", 40), Outcome: protocol.ReviewAligned}
	if err := errors.Join(j.Note(journal.Record{Reviewed: &gone}), j.Close()); err != nil {
		t.Fatal(err)
	}
	run.resume(false)
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.reviews(); len(got) != 3 || got[2] != "list/show Aligned Known" {
		t.Errorf("reviews: %q", got)
	}
	if asked := player.Recorded(); len(asked) != 2 || !strings.Contains(asked[1].Body, "web/form.html (Added)") {
		t.Errorf("%d questions: %+v", len(asked), asked)
	}
}

// TestNoFileHidesBehindLargeOnes: the patch of everything has no room for a file behind large ones, and a reviewer still sees its lines.
func TestNoFileHidesBehindLargeOnes(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, oneFinding, func(o *protocol.Orders) {
		o.Agent.Command = []string{"sh", "-c", `for i in 1 2 3 4 5; do yes "large $i" | head -c 400000 > web/a$i.html; done; ` + wroteTasks}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	asked := player.Recorded()
	if len(asked) == 0 || !strings.Contains(asked[0].Body, "1 +page/form") || !strings.Contains(asked[0].Body, "1 +large ") {
		t.Errorf("%d questions: %.6000q", len(asked), asked[0].Body)
	}
}

// TestNoFileHidesBehindAFolder: a folder of large files in place of a file takes no room from the files behind it, and neither does a file in place of such a folder.
func TestNoFileHidesBehindAFolder(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, "- tool: {name: report_findings, input: {summary: All is well., findings: []}}", func(o *protocol.Orders) {
		o.Agent.Command = []string{"sh", "-c", `case "$TIDEWAITER_TASK" in
page/form) rm web/index.html; mkdir web/index.html; for i in 1 2 3 4 5 6 7 8; do yes "large $i" | head -c 400000 > web/index.html/$i; done;;
list/show) rm -r web/index.html; echo "small again" > web/index.html;;
esac; echo "behind $TIDEWAITER_TASK" > web/z.html; ` + wroteTasks}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	asked := player.Recorded()
	for i, want := range []string{"1 +behind page/form", "1 +behind list/show"} {
		if len(asked) != 2 || !strings.Contains(asked[i].Body, want) {
			t.Errorf("%d questions, and question %d lacks %q", len(asked), i, want)
		}
	}
}

// TestTheRecordOfAReview: the journal has what the reviewer was asked, with its digest, the calls that it took, and why a finding does not count.
func TestTheRecordOfAReview(t *testing.T) {
	t.Parallel()
	const answers = "- tool: {name: report_findings, input: {summary: One of two., findings: [" +
		"{path: web/form.html, line: 1, quote: page/form, rule: naming, description: Name it like the others, priority: Low}, " +
		"{path: web/form.html, line: 1, quote: nowhere, rule: tabs, description: Use tabs, priority: Low}]}}"
	w, player := newReviewed(t, "- text: I like it.\n"+answers)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	records, _ := w.recorded()
	i := slices.IndexFunc(records, func(r journal.Record) bool { return r.Reviewed != nil })
	if i < 0 || records[i].Reviewed.Asked == nil {
		t.Fatalf("no review that was asked for: %v", w.reviews())
	}
	v := *records[i].Reviewed
	if diff := cmp.Diff([]review.Discarded{{Path: "web/form.html", Rule: "tabs", Reason: review.QuoteNotThere}}, v.Discarded); diff != "" {
		t.Errorf("discarded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"call-1", "call-2"}, v.Asked.Calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	sum := sha256.Sum256([]byte(v.Asked.Question))
	if v.Asked.SHA256 != hex.EncodeToString(sum[:]) || !strings.Contains(v.Asked.Question, "web/form.html (Added)") || !strings.Contains(player.Recorded()[0].Body, "web/form.html (Added)") {
		t.Errorf("asked: %+v", v.Asked)
	}
}
