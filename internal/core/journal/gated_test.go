// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var (
	unit = protocol.Gate{Name: "unit", Command: []string{"make", "test"}}
	lint = protocol.Gate{Name: "lint", Command: []string{"make", "lint"}}
)

// gatedOrders list the task form with gates.
func gatedOrders(list ...protocol.Gate) journal.Record {
	o := &protocol.Orders{Tasks: []protocol.Task{{Name: "form"}}, Gates: list}
	for _, g := range list {
		o.Tasks[0].Gates = append(o.Tasks[0].Gates, g.Name)
	}
	return journal.Record{Orders: o}
}

// ran is the record of a gate on a tree.
func ran(g protocol.Gate, tree string, state gates.State) journal.Record {
	return journal.Record{GateRan: &journal.GateRan{Task: "form", Start: 9, Result: gates.Result{Gate: g.Name, Definition: gates.Sum(g), Tree: tree, State: state}}}
}

// TestGatedTask: a task is done when each gate that the orders list for it has passed on the tree of its closing checkpoint.
func TestGatedTask(t *testing.T) {
	closed := []journal.Record{attempt1, base, gatedOrders(unit, lint), begun, started, {TaskEnded: &journal.TaskEnded{Name: "form"}}, held, heldDone, good, goodDone}
	other := unit
	other.Command = []string{"make", "other"}
	back := journal.Record{Intent: &journal.Intent{Sequence: 5, Commit: "k5", OldChain: "k4", Tree: "t4", Delivery: "d4", OldDelivery: "d4", Restore: "bt", Chosen: true,
		TreeVerdict: protocol.Valid, Report: protocol.CheckpointReport{Settled: true}}}
	for name, c := range map[string]struct {
		more   []journal.Record
		done   bool
		gating string
	}{
		"no gate has run":                 {nil, false, "t4"},
		"one has passed":                  {[]journal.Record{ran(unit, "t4", gates.Passed)}, false, "t4"},
		"both have passed":                {[]journal.Record{ran(unit, "t4", gates.Passed), ran(lint, "t4", gates.Passed)}, true, ""},
		"one has failed":                  {[]journal.Record{ran(unit, "t4", gates.Failed), ran(lint, "t4", gates.Passed)}, false, "t4"},
		"one has failed, and then passed": {[]journal.Record{ran(unit, "t4", gates.Failed), ran(lint, "t4", gates.Passed), ran(unit, "t4", gates.Passed)}, true, ""},
		"another definition has passed":   {[]journal.Record{ran(other, "t4", gates.Passed), ran(lint, "t4", gates.Passed)}, false, "t4"},
		"that definition is ordered":      {[]journal.Record{ran(other, "t4", gates.Passed), ran(lint, "t4", gates.Passed), gatedOrders(other, lint)}, true, ""},
		"the other gate goes":             {[]journal.Record{ran(unit, "t4", gates.Passed), gatedOrders(unit)}, true, ""},
		"all gates go":                    {[]journal.Record{gatedOrders()}, true, ""},
		"the task goes":                   {[]journal.Record{{Orders: &protocol.Orders{}}}, false, "t4"},
		"the agent corrects":              {[]journal.Record{ran(unit, "t4", gates.Failed), {TaskCorrected: &journal.TaskCorrected{Name: "form", Text: "Fix it."}}}, false, ""},
		"the pod was lost":                {[]journal.Record{ran(unit, "t4", gates.Passed), attempt2}, false, "t4"},
		"the pod was lost between":        {[]journal.Record{ran(unit, "t4", gates.Passed), attempt2, ran(lint, "t4", gates.Passed)}, true, ""},
		"a rollback":                      {[]journal.Record{back, {Done: &journal.Done{Sequence: 5}}}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, write(t, append(closed, c.more...)...))
			task := s.Tasks["form"]
			if task.Done != c.done || task.Gating != c.gating {
				t.Errorf("the task is %+v", task)
			}
			if !c.done && name != "the agent corrects" && (!task.Begun || !task.Ended) {
				t.Errorf("its agent has not ended: %+v", task)
			}
		})
	}
	if task := read(t, write(t, append(closed, ran(unit, "t4", gates.Failed), journal.Record{TaskCorrected: &journal.TaskCorrected{Name: "form", Text: "Fix it."}})...)).Tasks["form"]; task.Before != 9 || task.Corrections != 1 {
		t.Errorf("the exit of a gate could be taken for that of the agent: %+v", task)
	}
	said := append([]journal.Record{closed[0], closed[1], closed[2], closed[3], closed[4], {Time: time.Unix(1, 0).UTC(), TaskCompleted: &journal.TaskCompleted{Name: "form"}}}, closed[5:]...)
	if task := read(t, write(t, append(said, attempt2)...)).Tasks["form"]; task.Gating == "" || task.Completed.IsZero() {
		t.Errorf("another closing checkpoint in the next attempt would not know that the agent said it is done: %+v", task)
	}
	restarted := journal.Record{TaskRestarted: &journal.TaskRestarted{Name: "form", Text: "Fix it."}}
	if task := read(t, write(t, append(closed, ran(unit, "t4", gates.Failed), restarted)...)).Tasks["form"]; !task.Restarts() || task.Corrections != 1 {
		t.Errorf("an agent without sessions: %+v", task)
	}
}

// TestGatesInPods: an attempt for each gate of a task neither runs gates again that have failed nor forgets the corrections. A user who has decided has
// both begin again.
func TestGatesInPods(t *testing.T) {
	gate := func(epoch int64) journal.Record {
		return journal.Record{Attempt: &journal.Attempt{Epoch: epoch, Run: "gate"}}
	}
	agent := func(epoch int64) journal.Record {
		return journal.Record{Attempt: &journal.Attempt{Epoch: epoch, Run: "agent"}}
	}
	ended := func(outcome string) journal.Record {
		return journal.Record{Final: &protocol.FinalReport{Outcome: outcome}}
	}
	proving := journal.Record{TaskProving: &journal.TaskProving{Name: "form"}}
	closed := []journal.Record{attempt1, base, gatedOrders(unit, lint), begun, started, {TaskCorrected: &journal.TaskCorrected{Name: "form", Text: "Fix it."}},
		{TaskEnded: &journal.TaskEnded{Name: "form"}}, held, heldDone, good, goodDone, proving, ended(protocol.OutcomeProving), gate(2)}
	corrected := journal.Record{TaskCorrected: &journal.TaskCorrected{Name: "form", Text: "Fix it."}}
	restart := journal.Record{TaskRestarted: &journal.TaskRestarted{Name: "form", Text: "Fix it."}}
	restarted := journal.Record{TaskStarted: &journal.TaskStarted{Name: "form", Start: 12, Session: true}}
	again := journal.Record{TaskBegun: &journal.TaskBegun{Name: "form", From: "t1"}}
	failed := slices.Concat(closed, []journal.Record{ran(unit, "t4", gates.Failed)})
	for name, c := range map[string]struct {
		more                 []journal.Record
		results, corrections int
		inPods               bool
	}{
		"the next gate":                  {[]journal.Record{ended(protocol.OutcomeProving), gate(3)}, 1, 1, true},
		"the agent":                      {[]journal.Record{ended(protocol.OutcomeUnfinished), agent(3)}, 1, 1, true},
		"the agent corrects":             {[]journal.Record{ended(protocol.OutcomeUnfinished), agent(3), corrected}, 1, 2, true},
		"the agent is lost":              {[]journal.Record{ended(protocol.OutcomeUnfinished), agent(3), corrected, restarted, agent(4)}, 0, 2, true},
		"the agent fails":                {[]journal.Record{ended(protocol.OutcomeUnfinished), agent(3), corrected, restarted, ended(protocol.OutcomeAgentFailed), agent(4), again}, 0, 2, true},
		"the agent does not hear of it":  {[]journal.Record{ended(protocol.OutcomeUnfinished), agent(3), corrected, agent(4), again}, 0, 1, true},
		"nor does one without sessions":  {[]journal.Record{ended(protocol.OutcomeUnfinished), agent(3), restart, agent(4), again}, 0, 1, true},
		"a user decides about another":   {[]journal.Record{ended(protocol.OutcomeUnfinished), agent(3), corrected, restarted, ended(protocol.OutcomeBlocked), agent(4), again}, 0, 0, false},
		"the pod is lost":                {[]journal.Record{{Attempt: &journal.Attempt{Epoch: 3, Run: "seal"}}, gate(4)}, 1, 1, true},
		"a user suspends":                {[]journal.Record{ended(protocol.OutcomeSuspended), agent(3)}, 1, 1, true},
		"a user has decided":             {[]journal.Record{ended(protocol.OutcomeBlocked), agent(3)}, 0, 0, false},
		"an agent's container ran one":   {[]journal.Record{ended(protocol.OutcomeUnfinished), agent(3), ran(lint, "t4", gates.Failed), agent(4)}, 0, 0, false},
		"a pass counts after a decision": {[]journal.Record{ran(lint, "t4", gates.Passed), ended(protocol.OutcomeBlocked), agent(3)}, 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, write(t, append(slices.Clone(failed), c.more...)...))
			task := s.Tasks["form"]
			if len(s.Results) != c.results || task.Corrections != c.corrections || task.InPods != c.inPods {
				t.Errorf("results %+v, %d corrections, in pods %t", s.Results, task.Corrections, task.InPods)
			}
		})
	}
	with := journal.Record{TaskStarted: &journal.TaskStarted{Name: "form", Start: 11, Session: true}}
	unheard := []journal.Record{attempt1, base, gatedOrders(unit), begun, with, {TaskEnded: &journal.TaskEnded{Name: "form"}}, held, heldDone, good, goodDone, proving, ended(protocol.OutcomeProving),
		gate(2), ran(unit, "t4", gates.Failed), ended(protocol.OutcomeUnfinished), agent(3), corrected, agent(4)}
	if task := read(t, write(t, unheard...)).Tasks["form"]; !task.Interrupted {
		t.Errorf("the pod was lost before the agent started, and its session is forgotten: %+v", task)
	}
	s := read(t, write(t, closed...))
	if name, inPods := s.Gating(); name != "form" || !inPods || s.Proving() != "t4" {
		t.Errorf("gates of %q on %s, in pods %t", name, s.Proving(), inPods)
	}
	s = read(t, write(t, append(slices.Clone(closed), ran(unit, "t4", gates.Passed), ran(lint, "t4", gates.Passed))...))
	if name, _ := s.Gating(); name != "" || s.Proving() != s.Promoted.Tree {
		t.Errorf("gates of %q on %s", name, s.Proving())
	}
	s = read(t, write(t, attempt1, base, gatedOrders(unit), begun))
	if _, err := s.Apply(proving); err == nil {
		t.Error("a task that does not wait for gates is proved in pods")
	}
}

// TestAGateOfAnotherTree: a result that cannot follow is an error, not a proof.
func TestAGateOfAnotherTree(t *testing.T) {
	s := read(t, write(t, attempt1, base, gatedOrders(unit), begun))
	if _, err := s.Apply(ran(unit, "t4", gates.Passed)); err == nil {
		t.Error("a gate counts before there is a closing checkpoint")
	}
}

// TestResultsLast: a gate that has passed on the tree does not run again in the next attempt; every other one does, because a user has asked for another try.
func TestResultsLast(t *testing.T) {
	s := read(t, write(t, attempt1, base, gatedOrders(unit, lint), begun, started, journal.Record{TaskEnded: &journal.TaskEnded{Name: "form"}}, held, heldDone, good, goodDone,
		ran(unit, "t4", gates.Passed), ran(lint, "t4", gates.Failed), attempt2))
	if len(s.Results) != 1 || s.Results[0].Gate != "unit" {
		t.Errorf("results %+v", s.Results)
	}
}
