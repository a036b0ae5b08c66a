// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/deliveries"
	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// reviewedOrders let both reviewers run, and list tasks.
func reviewedOrders(tasks ...string) journal.Record {
	on := policy.Reviewer{Enabled: new(true)}
	o := &protocol.Orders{Policy: policy.Effective{Reviewers: policy.Reviewers{CodeStyle: on, Design: on, UrgencyThreshold: 100, PolishTasks: 2}}, Gates: []protocol.Gate{unit}}
	for _, name := range tasks {
		o.Tasks = append(o.Tasks, protocol.Task{Name: name, Gates: []string{unit.Name}})
	}
	return journal.Record{Orders: o}
}

// finding is a directive of the reviewer of code style.
func finding(id string) protocol.Directive {
	return protocol.Directive{ID: "code-style/" + id, Source: protocol.SourceCodeStyle, Type: protocol.DirectiveCleanup, Description: "Rename it."}
}

// reviewed is the record of a review that found something.
func reviewed(over int, tree string, found ...protocol.Directive) journal.Record {
	v := &journal.Reviewed{Reviewer: protocol.SourceCodeStyle, Task: "form", Over: over, Tree: tree, Outcome: review.Outcome(found, 0), Directives: found}
	return journal.Record{Reviewed: v}
}

// answered is the record of a directive's new state.
func answered(d protocol.Directive, state string) journal.Record {
	return journal.Record{Directed: &journal.Directed{Entries: []directives.Entry{{ID: d.ID, Source: d.Source, State: state, Given: true}}}}
}

// TestRStateWhatTheLastReviewSaid stays for the next question: neither a skipped review nor one for which no model was asked takes its place, and other looks keep it.
func TestRStateWhatTheLastReviewSaid(t *testing.T) {
	said := func(over int, task, outcome, summary string, asked bool) journal.Record {
		v := &journal.Reviewed{Reviewer: protocol.SourceCodeStyle, Task: task, Over: over, Tree: "t", Outcome: outcome, Summary: summary}
		if asked {
			v.Asked = &review.Asked{Question: "?"}
		}
		return journal.Record{Reviewed: v}
	}
	first := said(1, "form", protocol.ReviewAligned, "Nothing.\nAt all.", true)
	for name, next := range map[string]journal.Record{
		"skipped":      said(2, "save", protocol.ReviewSkipped, "the provider is away", true),
		"no new work":  said(2, "save", protocol.ReviewAligned, "nothing has changed since its last review", false),
		"nothing else": {Reviewed: &journal.Reviewed{Reviewer: protocol.SourceCodeStyle, Task: "save", Over: 2, Passed: true}},
	} {
		s := read(t, write(t, attempt1, base, reviewedOrders("form"), first, next))
		if look := s.Reviews[protocol.SourceCodeStyle]; look.Said != "Nothing. At all." || look.After != "form" || look.Asked != 2 {
			t.Errorf("%s: %+v", name, look)
		}
	}
	verdict := said(1, "form", protocol.ReviewAligned, "On track.", true)
	verdict.Reviewed.Reviewer = protocol.SourceAssessor
	later := said(2, "save", protocol.ReviewAligned, "nothing", false)
	later.Reviewed.Reviewer = protocol.SourceAssessor
	s := read(t, write(t, attempt1, base, reviewedOrders("form"), first, verdict, said(2, "save", protocol.ReviewAligned, "One name.", true), later))
	if look, theirs := s.Reviews[protocol.SourceCodeStyle], s.Reviews[protocol.SourceAssessor]; look.Said != "One name." || look.After != "save" || theirs.Said != "On track." {
		t.Errorf("the newest reviews: %+v, %+v", look, theirs)
	}
}

// TestRStateAReviewInTheJournal: its directives stay until they are over, and the reviewer has looked.
func TestRStateAReviewInTheJournal(t *testing.T) {
	a, b := finding("a"), finding("b")
	s := read(t, write(t, attempt1, base, reviewedOrders("form"), reviewed(1, "t1", a, b), reviewed(2, "t2"), answered(a, protocol.DirectiveAddressed), attempt2))
	if diff := cmp.Diff([]protocol.Directive{b}, s.Found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(review.History{protocol.SourceCodeStyle: {Asked: 2, Looked: 2, Tree: "t2"}}, s.Reviews); diff != "" {
		t.Errorf("the finding that was addressed brings the interval back (-want +got):\n%s", diff)
	}
	if len(s.Reviewed) != 2 || s.Reviewed[0].Directives != 2 || s.Reviewed[1].Outcome != protocol.ReviewAligned {
		t.Errorf("for people: %+v", s.Reviewed)
	}
	ended := answered(a, protocol.DirectiveAddressed)
	ended.Directed.Entries[0].Given = false
	s = read(t, write(t, attempt1, base, reviewedOrders("form"), reviewed(1, "t1", a), answered(a, protocol.DirectiveAddressed), reviewed(2, "t2"), ended))
	if got := s.Reviews[protocol.SourceCodeStyle].Quiet; got != 1 {
		t.Errorf("one finding that was addressed counts twice: the interval has doubled %d times", got)
	}
	skipped := reviewed(3, "t3")
	skipped.Reviewed.Outcome = protocol.ReviewSkipped
	s = read(t, write(t, attempt1, base, reviewedOrders("form"), reviewed(1, "t1", a), skipped, answered(a, protocol.DirectiveEscalated)))
	if got := s.Reviews[protocol.SourceCodeStyle]; got.Asked != 3 || got.Looked != 1 || got.Tree != "t1" || len(s.Found) != 1 {
		t.Errorf("after a skipped review: %+v, found %+v", got, s.Found)
	}
	if _, err := journal.Replay([]journal.Record{attempt1, {Reviewed: &journal.Reviewed{Reviewer: "Nobody", Outcome: protocol.ReviewAligned}}}); err == nil {
		t.Error("a review of nobody is taken")
	}
}

// TestACustomReviewerInTheJournal: a journal stays readable, and its directives stay, whether or not the policy still has the reviewer. One that has passed leaves
// nothing for users.
func TestACustomReviewerInTheJournal(t *testing.T) {
	const licenses = "custom/licenses"
	d := protocol.Directive{ID: "custom-licenses/a", Source: licenses, Type: protocol.DirectiveCleanup, Description: "Name the license."}
	look := reviewed(1, "t1", d)
	look.Reviewed.Reviewer = licenses
	passed := journal.Record{Reviewed: &journal.Reviewed{Reviewer: licenses, Task: "form", Over: 2, Tree: "t2", Passed: true}}
	s := read(t, write(t, attempt1, base, reviewedOrders("form"), look, passed, answered(d, protocol.DirectiveEscalated), attempt2))
	if diff := cmp.Diff(review.History{licenses: {Asked: 2, Looked: 1, Tree: "t1"}}, s.Reviews); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(s.Reviewed) != 1 || len(s.Found) != 1 || len(s.Answered) != 1 {
		t.Errorf("for users %+v, found %+v, answered %+v", s.Reviewed, s.Found, s.Answered)
	}
	for name, v := range map[string]journal.Reviewed{
		"another form of name":   {Reviewer: "custom/No name", Outcome: protocol.ReviewAligned},
		"passed with an outcome": {Reviewer: licenses, Outcome: protocol.ReviewAligned, Passed: true},
		"neither":                {Reviewer: licenses},
		"a verdict":              {Reviewer: licenses, Outcome: protocol.ReviewMajorDivergence, Diverged: "It is another app."},
	} {
		if _, err := journal.Replay([]journal.Record{attempt1, {Reviewed: &v}}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestReviewersLookAfterARetry: aborted tasks begin again when a user asks for it, and reviewers look at them again.
func TestReviewersLookAfterARetry(t *testing.T) {
	final := journal.Record{Final: &protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonTasksAborted}}
	s, err := journal.Replay([]journal.Record{attempt1, base, reviewedOrders("form"), reviewed(5, "t5"), final, {Attempt: &journal.Attempt{Epoch: 2, Run: protocol.RunAgent}}})
	if err != nil {
		t.Fatal(err)
	}
	p := s.Orders.Policy
	p.Reviewers.CodeStyle.EveryTasks, p.Reviewers.CodeStyle.OnMilestone = 1, false
	if due := s.Reviews.Due(p, nil, review.Breakpoint{Over: 2}); len(due) != 1 || due[0].Name != protocol.SourceCodeStyle {
		t.Errorf("after two tasks of the retry: %v, have %+v", due, s.Reviews)
	}
}

// TestReviewsAreBounded: whatever is found in a long life.
func TestReviewsAreBounded(t *testing.T) {
	records := []journal.Record{attempt1, base, reviewedOrders("form")}
	for i := range 100 {
		records = append(records, reviewed(i, "t", finding(fmt.Sprint(i))))
	}
	s, err := journal.Replay(records)
	if err != nil {
		t.Fatal(err)
	}
	// A Feature has as many directives, answers, and notices of deliveries.
	if others := 64 + 64 + deliveries.MaxNotices; len(s.Found)+others > protocol.MaxDirectives {
		t.Errorf("%d found: the book has no room for a new directive of a user", len(s.Found))
	}
	if len(s.Found) > 64 || len(s.Reviewed) > protocol.MaxReviews || s.Found[len(s.Found)-1].ID != "code-style/99" {
		t.Errorf("%d found, %d reviews", len(s.Found), len(s.Reviewed))
	}
}

// TestUrgencyInTheJournal: what makes reviews urgent follows from the records, and only where reviewers run.
func TestUrgencyInTheJournal(t *testing.T) {
	closed := []journal.Record{begun, started, {TaskEnded: &journal.TaskEnded{Name: "form"}}, held, heldDone, good, goodDone, ran(unit, "t4", gates.Failed), ran(unit, "t4", gates.Passed)}
	s := read(t, write(t, append([]journal.Record{attempt1, base, reviewedOrders("form")}, closed...)...))
	want := review.History{protocol.SourceCodeStyle: {Urgency: 30}, protocol.SourceDesign: {Urgency: 30}}
	if diff := cmp.Diff(want, s.Reviews); diff != "" {
		t.Errorf("a gate failed once (-want +got):\n%s", diff)
	}
	s = read(t, write(t, append([]journal.Record{attempt1, base, gatedOrders(unit)}, closed...)...))
	if s.Reviews != nil {
		t.Errorf("without reviewers: %+v", s.Reviews)
	}
	s = read(t, write(t, attempt1, base, reviewedOrders("form"), journal.Record{Planned: &journal.Planned{Plan: &protocol.Proposal{}}}, journal.Record{Planned: &journal.Planned{Plan: &protocol.Proposal{}, Request: "replan-1"}}))
	if got := s.Reviews[protocol.SourceDesign]; got.Urgency != 20 || !got.Called {
		t.Errorf("after another plan: %+v", s.Reviews)
	}
}

// TestASnapshotWithoutReviews: an earlier version has written it, so that nobody who begins to read with it knows the urgency before it.
func TestASnapshotWithoutReviews(t *testing.T) {
	before := []journal.Record{attempt1, base, reviewedOrders("form"), begun, started, {TaskEnded: &journal.TaskEnded{Name: "form"}}, held, heldDone, good, goodDone, ran(unit, "t4", gates.Failed)}
	snapshot := snapshotOf(t, 1, before...)
	snapshot.Snapshot.State.Reviews = nil
	whole := append(slices.Clone(before), snapshot, ran(unit, "t4", gates.Failed))
	s, err := journal.Replay(whole)
	if err != nil {
		t.Fatal(err)
	}
	tail, err := journal.Replay(whole[len(before):])
	if err != nil {
		t.Fatal(err)
	}
	if got, also := s.Reviews[protocol.SourceDesign].Urgency, tail.Reviews[protocol.SourceDesign].Urgency; got != 30 || also != 30 {
		t.Errorf("urgency %d from all records and %d from the snapshot, want 30", got, also)
	}
}

// TestASnapshotWithoutWhatReviewsSaid: an earlier version has written it, and who begins to read with it knows no more.
func TestASnapshotWithoutWhatReviewsSaid(t *testing.T) {
	r := reviewed(1, "t1", finding("a"))
	r.Reviewed.Summary, r.Reviewed.Asked = "Two names.", &review.Asked{Question: "?"}
	before := []journal.Record{attempt1, base, reviewedOrders("form"), r}
	snapshot := snapshotOf(t, 1, before...)
	look := snapshot.Snapshot.State.Reviews[r.Reviewed.Reviewer]
	if look.Said == "" {
		t.Fatalf("the review said nothing: %+v", snapshot.Snapshot.State.Reviews)
	}
	look.Said, look.After = "", ""
	snapshot.Snapshot.State.Reviews = maps.Clone(snapshot.Snapshot.State.Reviews)
	snapshot.Snapshot.State.Reviews[r.Reviewed.Reviewer] = look
	for name, records := range map[string][]journal.Record{"all": append(before, snapshot), "the rest": {snapshot}} {
		s, err := journal.Replay(records)
		if err != nil || s.Reviews[r.Reviewed.Reviewer] != look {
			t.Errorf("%s: %v, %+v", name, err, s.Reviews)
		}
	}
}

// TestReviewersLookAtTasksAfterPolishing: not before a user has added one, and not at what corrects the polished work.
func TestReviewersLookAtTasksAfterPolishing(t *testing.T) {
	over := func(checkpoint int64) journal.Task {
		return journal.Task{Done: true, Work: protocol.TaskWork{Checkpoint: checkpoint}}
	}
	s := journal.State{Orders: reviewedOrders("form").Orders, Tasks: map[string]journal.Task{"form": over(1)}, Added: []journal.TaskAdded{{Name: "delivery/polish/1"}}}
	for _, step := range []struct {
		task string
		want bool
	}{{"form", false}, {"delivery/polish/1", false}, {"delivery/gates/2", false}, {"save", true}} {
		s.Tasks[step.task] = over(int64(len(s.Tasks)) + 1)
		if _, is := s.Breakpoint(); is != step.want {
			t.Errorf("after %s: %v", step.task, is)
		}
	}
}

// TestRExecBreakpoint: between two tasks, with the milestone of the last one.
func TestRExecBreakpoint(t *testing.T) {
	done := func(name string, checkpoint int64) journal.Task {
		return journal.Task{Done: true, Work: protocol.TaskWork{Checkpoint: checkpoint}}
	}
	s := journal.State{Orders: reviewedOrders("page/form", "page/save", "list/show").Orders, Tasks: map[string]journal.Task{}}
	check := func(what string, want review.Breakpoint, is bool) {
		t.Helper()
		if got, have := s.Breakpoint(); got != want || have != is {
			t.Errorf("%s: %+v, %v", what, got, have)
		}
	}
	check("at the beginning", review.Breakpoint{}, false)
	s.Tasks["page/form"] = done("page/form", 1)
	check("in a milestone", review.Breakpoint{Over: 1}, true)
	s.Tasks["page/save"] = journal.Task{Begun: true}
	check("at work", review.Breakpoint{}, false)
	s.Tasks["page/save"] = done("page/save", 2)
	check("after a milestone", review.Breakpoint{Over: 2, Milestone: true}, true)
	s.Tasks["list/show"] = done("list/show", 3)
	check("at the end", review.Breakpoint{Over: 3, Milestone: true}, true)
	s.Tasks["delivery/gates/1"] = done("delivery/gates/1", 4)
	check("after a correction of gates before the delivery", review.Breakpoint{Over: 4}, true)
	s.Added = []journal.TaskAdded{{Name: "delivery/polish/1"}}
	check("while the work is polished", review.Breakpoint{}, false)
}

// TestRConvPolish: as often as the policy allows, and as long as it changes something.
func TestRConvPolish(t *testing.T) {
	s := journal.State{Orders: reviewedOrders("form").Orders}
	add := func(open ...string) string {
		name := s.NextPolish(open)
		if name != "" {
			s.Added = append(s.Added, journal.TaskAdded{Name: name, Directives: open})
		}
		return name
	}
	got := []string{add(), add("a", "b"), add("a", "b"), add("b"), add("c")}
	if diff := cmp.Diff([]string{"", "delivery/polish/1", "", "delivery/polish/2", ""}, got); diff != "" {
		t.Errorf("polish tasks (-want +got):\n%s", diff)
	}
	o := s.Complete(*s.Orders)
	if last := o.Tasks[len(o.Tasks)-1]; last.Name != "delivery/polish/2" || !last.Continue || !slices.Equal(last.Gates, []string{"unit"}) {
		t.Errorf("the last task: %+v", last)
	}
	spent, err := journal.Replay([]journal.Record{attempt1, base, {TaskAdded: &journal.TaskAdded{Name: "delivery/polish/1"}}, {TaskAdded: &journal.TaskAdded{Name: "delivery/gates/2"}}})
	if err != nil || spent.Spent != 1 {
		t.Errorf("%d corrections of gates before the delivery are spent, %v", spent.Spent, err)
	}
}
