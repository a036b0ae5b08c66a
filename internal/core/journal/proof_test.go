// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestProofs: a result counts on its tree, and for its definition. A task that is added, and a retry after a user has decided, have gates that have not passed run again.
func TestProofs(t *testing.T) {
	orders := func(list ...protocol.Gate) journal.Record {
		return journal.Record{Orders: &protocol.Orders{Tasks: []protocol.Task{{Name: "form", Gates: []string{"unit"}}}, Delivery: protocol.Delivery{Gates: list}}}
	}
	proof := func(g protocol.Gate, state gates.State) journal.Record {
		return journal.Record{DeliveryGateRan: &gates.Result{Gate: g.Name, Definition: gates.Sum(g), Tree: "bt", State: state}}
	}
	task := journal.Record{TaskAdded: &journal.TaskAdded{Name: "delivery/gates/1", Text: "Fix it."}}
	ended := func(outcome string) journal.Record {
		return journal.Record{Final: &protocol.FinalReport{Outcome: outcome}}
	}
	twin := unit
	twin.Command = []string{"make", "twin"}
	for name, c := range map[string]struct {
		more   []journal.Record
		kept   int
		proved bool
		spent  int
	}{
		"none":                   {nil, 0, false, 0},
		"one":                    {[]journal.Record{proof(unit, gates.Passed)}, 1, false, 0},
		"both":                   {[]journal.Record{proof(unit, gates.Passed), proof(twin, gates.Passed)}, 2, true, 0},
		"one failed":             {[]journal.Record{proof(unit, gates.Failed), proof(twin, gates.Passed)}, 2, false, 0},
		"not required any more":  {[]journal.Record{proof(lint, gates.Passed), proof(unit, gates.Passed)}, 1, false, 0},
		"the pod was lost":       {[]journal.Record{proof(unit, gates.Failed), attempt2}, 1, false, 0},
		"a task was added":       {[]journal.Record{proof(unit, gates.Failed), proof(twin, gates.Passed), task}, 1, false, 1},
		"an agent is to correct": {[]journal.Record{proof(unit, gates.Failed), task, ended(protocol.OutcomeUnfinished), attempt2}, 0, false, 1},
		"a user has decided":     {[]journal.Record{proof(twin, gates.Failed), task, proof(unit, gates.NotStarted), ended(protocol.OutcomeBlocked), attempt2}, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := journal.Replay(append([]journal.Record{attempt1, orders(unit, twin), base}, c.more...))
			if err != nil {
				t.Fatal(err)
			}
			if proved := gates.Proved(s.Orders.Delivery.Gates, s.Proofs, s.Promoted.Tree); proved != c.proved || len(s.Proofs) != c.kept || s.Spent != c.spent {
				t.Errorf("proved %t by %+v, spent %d", proved, s.Proofs, s.Spent)
			}
		})
	}
	elsewhere := journal.Record{DeliveryGateRan: &gates.Result{Gate: "unit", Tree: "another"}}
	for name, wrong := range map[string][]journal.Record{
		"another tree":       {attempt1, orders(unit), base, elsewhere},
		"before orders":      {attempt1, base, proof(unit, gates.Passed)},
		"a task added twice": {attempt1, orders(unit), base, task, task},
	} {
		if _, err := journal.Replay(wrong); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestCompleteOrders: tasks that were added follow the ones of the orders, with the gates of the last one. The text of one that is done is not kept.
func TestCompleteOrders(t *testing.T) {
	o := protocol.Orders{Tasks: []protocol.Task{{Name: "form", Gates: []string{"unit"}, Continue: true}}}
	s := journal.State{}
	if got := s.Complete(o); len(got.Tasks) != 1 || s.NextAdded() != "delivery/gates/1" {
		t.Errorf("%+v, next %s", got.Tasks, s.NextAdded())
	}
	s, err := journal.Replay([]journal.Record{attempt1, base, {TaskAdded: &journal.TaskAdded{Name: "delivery/gates/1", Text: "One."}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Tasks["delivery/gates/1"] = journal.Task{Done: true}
	if s, err = s.Apply(journal.Record{TaskAdded: &journal.TaskAdded{Name: "delivery/gates/2", Text: "Two."}}); err != nil {
		t.Fatal(err)
	}
	got := s.Complete(o)
	if len(got.Tasks) != 3 || got.Tasks[1].Instructions != "" || got.Tasks[2].Instructions != "Two." || len(got.GatesOf("delivery/gates/2")) != 0 || got.Tasks[2].Gates[0] != "unit" || got.Tasks[1].Continue || got.Tasks[2].Continue {
		t.Errorf("%+v", got.Tasks)
	}
	if len(o.Tasks) != 1 || len(s.Complete(protocol.Orders{}).Tasks) != 0 {
		t.Error("the orders themselves were changed, or tasks follow none")
	}
}
