// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// grave is a Critical directive of the reviewer of design.
func grave(id string) protocol.Directive {
	return protocol.Directive{ID: "design/" + id, Source: protocol.SourceDesign, Priority: protocol.PriorityCritical, Description: "Lock the store."}
}

// forGrave is the record of the task for it.
func forGrave(id, after string) journal.Record {
	return journal.Record{TaskAdded: &journal.TaskAdded{Name: "directive/design/" + id, Text: "Lock it.", Directives: []string{"design/" + id}, After: after}}
}

// TestNamesOfTasks: no task of a user has the name of one that nobody has listed.
func TestNamesOfTasks(t *testing.T) {
	for name, want := range map[string][3]bool{ // added, extra, for a directive
		"page/form": {}, "login": {}, "directive/form": {}, "directive": {}, "delivery/gates": {},
		"delivery/gates/1": {true}, "delivery/polish/1": {true, true}, "directive/design/1a2b3c4d": {true, true, true},
	} {
		if got := [3]bool{protocol.Added(name), protocol.Extra(name), protocol.Directs(name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestNextCritical: one at a time, each directive once, not while a listed task is unfinished, and not without end.
func TestNextCritical(t *testing.T) {
	done := func(checkpoint int64) journal.Task {
		return journal.Task{Done: true, Work: protocol.TaskWork{Checkpoint: checkpoint}}
	}
	s := journal.State{Orders: reviewedOrders("page/form", "page/save").Orders, Tasks: map[string]journal.Task{"page/form": done(1)}}
	check := func(what, want string, open ...string) {
		t.Helper()
		next, is := s.NextCritical(open)
		if got := next.Name + " after " + next.After; is != (want != "") || is && got != want {
			t.Errorf("%s: %v, %v, want %q", what, got, is, want)
		}
		if is {
			s.Added = append(s.Added, next)
		}
	}
	check("none is open", "")
	check("two are open", "directive/design/1 after page/form", "design/1", "design/2")
	check("one has not begun", "", "design/1", "design/2")
	s.Tasks["directive/design/1"] = journal.Task{Begun: true, From: "t1"}
	check("one is at work", "", "design/1", "design/2")
	s.Tasks["directive/design/1"] = done(2)
	if _, is := s.Breakpoint(); is {
		t.Error("reviewers look at a task for a directive")
	}
	check("the first is over", "directive/design/2 after page/form", "design/1", "design/2")
	s.Tasks["directive/design/2"] = done(3)
	check("both were given, and one is open again", "", "design/1")
	s.Tasks["page/save"] = journal.Task{From: "t3"}
	check("an earlier attempt began the next task", "", "design/3")
	s.Tasks["page/save"] = done(4)
	if b, is := s.Breakpoint(); !is || !b.Milestone {
		t.Errorf("after the next task: %+v, %v", b, is)
	}
	for i := range 100 {
		if next, is := s.NextCritical([]string{fmt.Sprintf("design/more-%d", i)}); is {
			s.Added = append(s.Added, next)
			s.Tasks[next.Name] = done(int64(10 + i))
		}
	}
	if n := s.TasksDone(); n != 2 { // in a task for a directive, the agent changes nothing else: no other directive becomes older
		t.Errorf("%d tasks are done", n)
	}
	if n := len(s.Added); n != 32 {
		t.Errorf("%d tasks for directives", n)
	}
	if s.NextPolish([]string{"a"}) != "delivery/polish/1" || s.NextAdded() != "delivery/gates/33" {
		t.Errorf("then %s and %s", s.NextPolish([]string{"a"}), s.NextAdded())
	}
}

// TestTheTaskOfACriticalDirective stands behind the task after which it was found, has its gates, and blocks nothing.
func TestTheTaskOfACriticalDirective(t *testing.T) {
	orders := reviewedOrders("page/form", "page/save", "list/show").Orders
	orders.Tasks[0].Gates, orders.Tasks[1].Gates = []string{"page"}, []string{"page"}
	s, err := journal.Replay([]journal.Record{attempt1, base, {Orders: orders}, forGrave("1", "page/form"), forGrave("2", "page/form"), forGrave("3", "list/show"), {TaskAdded: &journal.TaskAdded{Name: "delivery/polish/1"}}})
	if err != nil || s.Spent != 0 {
		t.Fatal(err, s.Spent)
	}
	over := func(names ...string) {
		for _, name := range names {
			s.Tasks[name] = journal.Task{Done: true}
		}
	}
	over("page/form")
	check := func(what string, o protocol.Orders, want ...string) {
		t.Helper()
		var got []string
		for _, task := range s.Complete(o).Tasks {
			got = append(got, task.Name+" "+task.Gates[0])
			if task.Continue != protocol.Extra(task.Name) {
				t.Errorf("%s: %+v", what, task)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(s.Complete(o), s.Complete(s.Complete(o))); diff != "" {
			t.Errorf("%s, completed twice (-once +twice):\n%s", what, diff)
		}
	}
	const one, two, three, polish = "directive/design/1 page", "directive/design/2 page", "directive/design/3 unit", "delivery/polish/1 unit"
	over("directive/design/3")
	check("after a task", *orders, "page/form page", one, two, "page/save page", "list/show unit", three, polish)
	moved := *orders
	moved.Tasks = []protocol.Task{orders.Tasks[1], orders.Tasks[0], orders.Tasks[2]}
	check("a user has moved the next task before it", moved, one, two, "page/save page", "page/form page", "list/show unit", three, polish)
	over("directive/design/1", "directive/design/2", "page/save", "list/show")
	check("all are over", *orders, "page/form page", one, two, "page/save page", "list/show unit", three, polish)
	without := *orders
	without.Tasks = orders.Tasks[1:]
	check("a user has removed the task", without, "page/save page", "list/show unit", "directive/design/1 unit", "directive/design/2 unit", three, polish)
}

// TestATaskForADirectiveThatIsAborted: the directive is Escalated, whatever the agent said of it, and a retry does not begin it again.
func TestATaskForADirectiveThatIsAborted(t *testing.T) {
	d := grave("1")
	const name = "directive/design/1"
	look := reviewed(1, "t1", d)
	look.Reviewed.Reviewer = protocol.SourceDesign
	aborted := func(answers ...journal.Record) []journal.Record {
		before := []journal.Record{attempt1, base, reviewedOrders("form", name), look, given(d), forGrave("1", "form"), {TaskBegun: &journal.TaskBegun{Name: name}}}
		return append(append(before, answers...),
			journal.Record{TaskAborted: &journal.TaskAborted{Name: name, ID: "steering/abort/1/0", Reason: protocol.ReasonGateFailed, Message: "the gate failed"}},
			journal.Record{Intent: &journal.Intent{Sequence: 1, Commit: "k1", Tree: "t1", Delivery: "b", OldDelivery: "b", Aborts: name, Report: protocol.CheckpointReport{Task: name}}},
			journal.Record{Done: &journal.Done{Sequence: 1}})
	}
	for what, tc := range map[string]struct {
		answers []journal.Record
		message string
		waits   int
	}{
		"without an answer":      {nil, "the task for it could not be done: the gate failed", 0},
		"it says it is done":     {[]journal.Record{answered(d, protocol.DirectiveAddressed)}, "the task for it could not be done: the gate failed", 0},
		"it says that it cannot": {[]journal.Record{answered(d, protocol.DirectiveEscalated)}, "", 1},
	} {
		records := aborted(tc.answers...)
		s := read(t, write(t, records...))
		e := s.Directives.Find(d.ID)
		if e.State != protocol.DirectiveEscalated || !e.Given || e.Message != tc.message || len(s.Found) != 1 || len(s.Answered) != tc.waits {
			t.Errorf("%s: %+v, found %+v, answered %+v", what, e, s.Found, s.Answered)
		}
		if s.Reviews[protocol.SourceDesign].Called || s.Reviews[protocol.SourceDesign].Urgency != 0 {
			t.Errorf("%s: its reviewer is called: %+v", what, s.Reviews)
		}
		again := slices.Concat(records, []journal.Record{{Final: &protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonTasksAborted}}, attempt2})
		if s := read(t, write(t, again...)); !s.Tasks[name].Aborted {
			t.Errorf("%s: a retry begins it again", what)
		}
	}
}

// TestCriticalTasksComeFirst: whatever users list and whatever is over, no task that is to come stands before an unfinished task for a directive, no listed task is
// lost, and their order stays.
func TestCriticalTasksComeFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a/1", "a/2", "b/1", "b/2"}
		s := journal.State{Orders: reviewedOrders(names...).Orders, Tasks: map[string]journal.Task{}}
		for i := range rapid.IntRange(0, 4).Draw(t, "directives") {
			s.Added = append(s.Added, *forGrave(fmt.Sprint(i), rapid.SampledFrom(append(names, "gone", "")).Draw(t, "after")).TaskAdded)
		}
		for _, name := range names {
			s.Tasks[name] = journal.Task{Done: rapid.Bool().Draw(t, name)}
		}
		for _, a := range s.Added[:rapid.IntRange(0, len(s.Added)).Draw(t, "over")] { // one after the other
			s.Tasks[a.Name] = journal.Task{Aborted: true}
		}
		o := *s.Orders
		o.Tasks = rapid.Permutation(o.Tasks).Draw(t, "order")
		o.Tasks = o.Tasks[:rapid.IntRange(1, len(o.Tasks)).Draw(t, "listed")]
		all := s.Complete(o).Tasks
		toCome := false
		for _, task := range all {
			over := s.Tasks[task.Name].Over()
			if protocol.Directs(task.Name) && !over && toCome {
				t.Fatalf("%s stands behind a task that is to come: %+v", task.Name, all)
			}
			toCome = toCome || !over && !protocol.Directs(task.Name)
		}
		listed := slices.DeleteFunc(slices.Clone(all), func(task protocol.Task) bool { return protocol.Directs(task.Name) })
		if diff := cmp.Diff(o.Tasks, listed); diff != "" || len(all) != len(listed)+len(s.Added) {
			t.Fatalf("%d tasks, listed (-want +got):\n%s", len(all), diff)
		}
	})
}

// TestTheTextOfATaskStays until the task is over, whatever else is added meanwhile: a reviewer can find a Critical problem before the agent corrects what gates have
// found.
func TestTheTextOfATaskStays(t *testing.T) {
	corrects := journal.Record{TaskAdded: &journal.TaskAdded{Name: "delivery/gates/1", Text: "The gate unit has failed."}}
	s := read(t, write(t, attempt1, base, reviewedOrders("form"), corrects, forGrave("1", "form")))
	texts := map[string]string{}
	for _, task := range s.Complete(*s.Orders).Tasks {
		texts[task.Name] = task.Instructions
	}
	if texts["delivery/gates/1"] != "The gate unit has failed." || texts["directive/design/1"] != "Lock it." {
		t.Errorf("%q", texts)
	}
	s.Tasks["delivery/gates/1"], s.Tasks["directive/design/1"] = journal.Task{Done: true}, journal.Task{Aborted: true}
	s, err := s.Apply(forGrave("2", "form"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Added[0].Text != "" || s.Added[1].Text != "" || s.Added[2].Text == "" {
		t.Errorf("texts of tasks that are over stay: %+v", s.Added)
	}
}

// TestGatesOfACriticalTask call nobody: its reviewer does not look at the task.
func TestGatesOfACriticalTask(t *testing.T) {
	for name, want := range map[string]int64{"form": 30, "directive/design/1": 0} {
		s := read(t, write(t, attempt1, base, reviewedOrders("form", "directive/design/1")))
		s.Tasks[name] = journal.Task{Begun: true, Gating: "t1"}
		s, err := s.Apply(journal.Record{GateRan: &journal.GateRan{Task: name, Result: gates.Result{Gate: "unit", Tree: "t1", State: gates.Failed}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Reviews[protocol.SourceCodeStyle].Urgency; got != want {
			t.Errorf("%s: urgency %d, want %d", name, got, want)
		}
	}
}
