// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/history"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

var (
	noon = time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)
	unit = protocol.Gate{Name: "unit", Command: []string{"make", "test"}}
)

// orders list the task form with the gate unit, and answers.
func orders(answers ...protocol.Answer) journal.Record {
	return journal.Record{Orders: &protocol.Orders{
		Tasks: []protocol.Task{{Name: "form", Gates: []string{"unit"}}}, Gates: []protocol.Gate{unit}, Answers: answers, Delivery: protocol.Delivery{Gates: []protocol.Gate{unit}},
	}}
}

// closing checkpoint of the task form, which changes its tree.
func closing(n int64, old, tree string) []journal.Record {
	commit, before := "k"+tree, ""
	if old != "" {
		before = "k" + old
	}
	delivery := "d" + old
	if old == "" {
		delivery = "base"
	}
	return []journal.Record{
		{Intent: &journal.Intent{Sequence: n, Commit: commit, OldChain: before, Tree: tree, Delivery: "d" + tree, OldDelivery: delivery, Completes: "form", TreeVerdict: protocol.Valid,
			Report: protocol.CheckpointReport{Sequence: n, Task: "form", Settled: true}}},
		{Done: &journal.Done{Sequence: n}},
	}
}

func ran(tree string, state gates.State, exit int) journal.Record {
	return journal.Record{GateRan: &journal.GateRan{Task: "form", Start: 9, Result: gates.Result{Gate: "unit", Definition: gates.Sum(unit), Tree: tree, State: state, ExitCode: exit, Duration: 1500 * time.Millisecond, Output: "--- FAIL\n"}}}
}

var plan = protocol.Proposal{Milestones: []protocol.ProposedMilestone{{Name: "one", Tasks: []protocol.ProposedTask{{Name: "form", Instructions: "Do it."}}}}}

// life of a Feature, with everything that has an entry.
func life() []journal.Record {
	list := []journal.Record{
		{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}, orders(), {Base: &journal.Base{Commit: "base", Tree: "bt"}}, {Planned: &journal.Planned{Plan: &plan}},
		{PlanMissing: &journal.PlanMissing{Request: "replan-1", Message: "no model answered"}}, {Planned: &journal.Planned{Plan: &plan, Reasons: "The store needs the form.", Request: "replan-2"}},
		{PlanApproved: &journal.PlanApproved{Hash: plans.Hash(plan)}},
		{TaskBegun: &journal.TaskBegun{Name: "form"}}, {TaskStarted: &journal.TaskStarted{Name: "form", Start: 1, Session: true}},
		{Asked: &protocol.Question{ID: "q1", Text: "Which color?", At: noon}}, {TaskParked: &journal.TaskParked{Name: "form"}}, {TaskEnded: &journal.TaskEnded{Name: "form", ExitCode: 143, Stopped: true}},
		{Final: &protocol.FinalReport{Outcome: protocol.OutcomeParked, Reason: "WaitingForAnswer", Message: "it waits"}},
		{Attempt: &journal.Attempt{Epoch: 2, Run: "agent"}}, orders(protocol.Answer{Question: "q1", Text: "Blue."}), orders(protocol.Answer{Question: "q1", Text: "Blue."}),
		{TaskBegun: &journal.TaskBegun{Name: "form", Knowledge: &journal.Knowledge{Given: 2, Left: 1, GivenPaths: []string{"docs/knowledge/design/form.md"}, LeftOut: []string{"docs/knowledge/domain/stock.md does not meet the task"}}}}, {TaskStarted: &journal.TaskStarted{Name: "form", Start: 2, Session: true}},
		{TaskRestarted: &journal.TaskRestarted{Name: "form", ID: "steering/1", Text: "Again."}}, {TaskStarted: &journal.TaskStarted{Name: "form", Start: 3}},
		{TaskEnded: &journal.TaskEnded{Name: "form"}}, {TaskCorrected: &journal.TaskCorrected{Name: "form", Text: "Not valid."}}, {TaskStarted: &journal.TaskStarted{Name: "form", Start: 4}},
		{TaskCompleted: &journal.TaskCompleted{Name: "form", Summary: "A form."}}, {TaskEnded: &journal.TaskEnded{Name: "form"}},
	}
	list = append(list, closing(1, "", "t1")...)
	list = append(list, ran("t1", gates.Failed, 1), journal.Record{TaskCorrected: &journal.TaskCorrected{Name: "form", Text: "Gate unit failed."}},
		journal.Record{TaskEnded: &journal.TaskEnded{Name: "form"}})
	list = append(list, closing(2, "t1", "t2")...)
	return append(list, ran("t2", gates.Passed, 0),
		journal.Record{DeliveryGateRan: &gates.Result{Gate: "unit", Definition: gates.Sum(unit), Tree: "t2", State: gates.NotStarted, ExitCode: 127, Message: "not found"}},
		journal.Record{TaskAdded: &journal.TaskAdded{Name: "delivery/gates/1", Text: "Correct it."}},
		journal.Record{TaskAdded: &journal.TaskAdded{Name: "delivery/polish/1", Text: "Polish it.", Directives: []string{"code-style/1"}}},
		journal.Record{Reviewed: &journal.Reviewed{Reviewer: protocol.SourceCodeStyle, Task: "form", Outcome: protocol.ReviewMinorDrift, Summary: "It has two names.",
			Directives: []protocol.Directive{{ID: "code-style/1", Type: protocol.DirectiveCleanup, Priority: protocol.PriorityLow, Description: "Rename it."}}, Discarded: []review.Discarded{{Reason: review.Known}, {Path: "web/a b.html", Rule: "naming", Reason: review.QuoteNotThere}},
			Asked: &review.Asked{Question: "What is wrong?", SHA256: "5a1e", Calls: []string{"call-1", "call-2"}}}},
		journal.Record{Reviewed: &journal.Reviewed{Reviewer: protocol.CustomReviewer("licenses"), Task: "form", Passed: true}},
		journal.Record{Told: &journal.Told{Text: "nothing of it is history"}},
		journal.Record{TaskBegun: &journal.TaskBegun{Name: "delivery/gates/1"}}, journal.Record{TaskRejected: &journal.TaskRejected{Name: "delivery/gates/1", Message: "It cannot be done."}},
		journal.Record{TaskDropped: &journal.TaskDropped{Name: "delivery/gates/1"}},
		journal.Record{Final: &protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: "GateNotStarted", Message: "the command is wrong"}})
}

// tell all entries of records whose positions are their indexes from 1. Another Teller takes over before the record at takeOver.
func tell(t *testing.T, records []journal.Record, takeOver int) []protocol.HistoryEntry {
	t.Helper()
	var state journal.State
	var list []protocol.HistoryEntry
	teller := history.NewTeller(state)
	for i, r := range records {
		if i == takeOver {
			teller = history.NewTeller(state)
		}
		r.Time = noon.Add(time.Duration(i) * time.Second)
		next, err := state.Apply(r)
		if err != nil {
			t.Fatalf("record %d: %v", i+1, err)
		}
		state = next
		list = append(list, teller.Tell(int64(i+1), state, r)...)
	}
	return list
}

// TestLife: every kind of entry, with its cause, and no entry for what says nothing to people.
func TestLife(t *testing.T) {
	type e = protocol.HistoryEntry
	task := func(attempt int64, event, cause, text string) e {
		return e{Attempt: attempt, Kind: protocol.HistoryTask, Event: event, Cause: cause, Task: "form", Text: text}
	}
	attempt := func(n int64, event, message string) e {
		return e{Attempt: n, Kind: protocol.HistoryAttempt, Event: event, Name: "agent", Message: message}
	}
	gate := func(state gates.State, tree string, exit int, message string) e {
		return e{Attempt: 2, Kind: protocol.HistoryGate, Event: string(state), Task: "form", Name: "unit", Tree: tree, Duration: 1500, ExitCode: exit, Message: message, Text: "--- FAIL\n"}
	}
	added := task(2, protocol.HistoryAdded, protocol.CauseDeliveryGate, "Correct it.")
	begunAgain, rejected, dropped := task(2, protocol.HistoryBegun, "", ""), task(2, protocol.HistoryRejected, "", ""), task(2, protocol.HistoryDropped, "", "")
	for _, x := range []*e{&added, &begunAgain, &rejected, &dropped} {
		x.Task = "delivery/gates/1"
	}
	rejected.Message = "It cannot be done."
	polish := task(2, protocol.HistoryAdded, protocol.CauseDirectives, "Polish it.")
	polish.Task = "delivery/polish/1"
	looked := e{Attempt: 2, Kind: protocol.HistoryReview, Event: protocol.ReviewMinorDrift, Task: "form", Name: protocol.SourceCodeStyle, Message: "It has two names.",
		Findings: &protocol.Findings{Kept: 1, Discarded: []string{"Known", "QuoteNotThere"}},
		Text:     "code-style/1 (Cleanup, Low): Rename it.\na finding does not count: Known\na finding does not count: QuoteNotThere, rule naming, in \"web/a b.html\"\nquestion: SHA-256 5a1e, bytes: 14\nmodel call: call-1\nmodel call: call-2\n"}
	question := e{Attempt: 2, Kind: protocol.HistoryReviewQuestion, Event: protocol.HistoryAsked, Task: "form", Name: protocol.SourceCodeStyle, Message: "SHA-256 5a1e, bytes: 14", Text: "What is wrong?"}
	learned := task(2, protocol.HistoryBegun, "", "knowledge that the agent gets:\n- docs/knowledge/design/form.md\n- and 1 more\nknowledge that it does not get:\n- docs/knowledge/domain/stock.md does not meet the task\n")
	learned.Message = "documents of knowledge that the agent gets: 2 of 3"
	stopped, completed := task(1, protocol.HistoryEnded, "", ""), task(2, protocol.HistoryCompleted, "", "A form.")
	stopped.ExitCode, completed.Message = 143, "A form."
	want := []e{
		attempt(1, protocol.HistoryBegun, ""),
		{Attempt: 1, Kind: protocol.HistoryPlan, Event: protocol.HistoryProposed, Name: plans.Hash(plan), Message: "milestones: 1, tasks: 1"},
		{Attempt: 1, Kind: protocol.HistoryPlan, Event: protocol.HistoryUnavailable, Message: "request replan-1: no model answered"},
		{Attempt: 1, Kind: protocol.HistoryPlan, Event: protocol.HistoryProposed, Name: plans.Hash(plan), Message: "request replan-2: milestones: 1, tasks: 1. Reasons: The store needs the form."},
		{Attempt: 1, Kind: protocol.HistoryPlan, Event: protocol.HistoryApproved, Name: plans.Hash(plan)},
		task(1, protocol.HistoryBegun, "", ""),
		{Attempt: 1, Kind: protocol.HistoryQuestion, Event: protocol.HistoryAsked, Task: "form", Name: "q1", Message: "Which color?", Text: "Which color?"},
		task(1, protocol.HistoryParked, "", ""), stopped, attempt(1, protocol.OutcomeParked, "WaitingForAnswer: it waits"),
		attempt(2, protocol.HistoryBegun, ""),
		{Attempt: 2, Kind: protocol.HistoryAnswer, Event: protocol.HistoryGiven, Name: "q1", Message: "Blue.", Text: "Blue."},
		learned, task(2, protocol.HistoryRestarted, protocol.CauseSteering, "Again."), task(2, protocol.HistoryEnded, "", ""),
		task(2, protocol.HistoryCorrected, protocol.CauseCheckpoint, "Not valid."), completed, task(2, protocol.HistoryEnded, "", ""),
		gate(gates.Failed, "t1", 1, "exited with code 1 after 2s"), task(2, protocol.HistoryCorrected, protocol.CauseGate, "Gate unit failed."), task(2, protocol.HistoryEnded, "", ""),
		gate(gates.Passed, "t2", 0, "passed"), task(2, protocol.HistoryDone, "", ""),
		{Attempt: 2, Kind: protocol.HistoryGate, Event: string(gates.NotStarted), Name: "unit", Tree: "t2", ExitCode: 127, Message: "could not be started: not found"},
		added, polish, looked, question, begunAgain, rejected, dropped, attempt(2, protocol.OutcomeBlocked, "GateNotStarted: the command is wrong"),
	}
	got := tell(t, life(), -1)
	if !strings.Contains(got[1].Text, `"instructions": "Do it."`) {
		t.Errorf("the plan is %q", got[1].Text)
	}
	got[1].Text, got[3].Text = "", ""
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(e{}, "Sequence", "Time")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	last := int64(0)
	for _, x := range got {
		if x.Sequence <= last || x.Time.IsZero() {
			t.Errorf("%+v follows %d", x, last)
		}
		last = x.Sequence
	}
}

// TestAnotherProcess tells the same of the same records, wherever it begins: an entry that is handed over twice has one number and one content.
func TestAnotherProcess(t *testing.T) {
	want := tell(t, life(), -1)
	for n := range life() {
		if diff := cmp.Diff(want, tell(t, life(), n)); diff != "" {
			t.Errorf("from record %d on (-want +got):\n%s", n+1, diff)
		}
	}
}

// TestBounds: whatever a record has, an entry has no more than the ledger takes, and says so.
func TestBounds(t *testing.T) {
	long := strings.Repeat("ü\n", 64<<10)
	teller := history.NewTeller(journal.State{})
	answers := make([]protocol.Answer, 2000)
	for i := range answers {
		answers[i] = protocol.Answer{Question: strings.Repeat("q", i+1), Text: long}
	}
	if got := teller.Tell(1, journal.State{}, journal.Record{Orders: &protocol.Orders{Answers: answers}}); len(got) != 1000 || got[999].Sequence != 1999 {
		t.Errorf("%d entries", len(got))
	}
	for _, e := range teller.Tell(2, journal.State{}, journal.Record{TaskCompleted: &journal.TaskCompleted{Name: "form", Summary: long}}) {
		if len(e.Message) > protocol.MaxHistoryMessage || len(e.Text) > protocol.MaxHistoryText || strings.Contains(e.Message, "\n") || !strings.Contains(e.Missing, "it has 196608 bytes") {
			t.Errorf("a message of %d bytes, a text of %d, and %q", len(e.Message), len(e.Text), e.Missing)
		}
	}
}
