// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestShownGates: people see the newest result of each gate that the orders list, also while the agent corrects its work, and in the next attempt.
func TestShownGates(t *testing.T) {
	closed := []journal.Record{attempt1, base, gatedOrders(unit, lint), begun, started, {TaskEnded: &journal.TaskEnded{Name: "form"}}, held, heldDone, good, goodDone}
	other := lint
	other.Command = []string{"make", "other"}
	failed, passed := protocol.GateStatus{Name: "unit", State: "Failed"}, protocol.GateStatus{Name: "lint", State: "Passed"}
	corrected := journal.Record{TaskCorrected: &journal.TaskCorrected{Name: "form", Text: "Fix it."}}
	for name, tc := range map[string]struct {
		more []journal.Record
		want []protocol.GateStatus
	}{
		"none has run":                {nil, nil},
		"each":                        {[]journal.Record{ran(unit, "t4", gates.Failed), ran(lint, "t4", gates.Passed)}, []protocol.GateStatus{failed, passed}},
		"the newest of one":           {[]journal.Record{ran(unit, "t4", gates.Failed), ran(lint, "t4", gates.Failed), ran(lint, "t4", gates.Passed)}, []protocol.GateStatus{failed, passed}},
		"while the agent corrects":    {[]journal.Record{ran(unit, "t4", gates.Failed), corrected}, []protocol.GateStatus{failed}},
		"in the next attempt":         {[]journal.Record{ran(unit, "t4", gates.Failed), ran(lint, "t4", gates.Passed), attempt2}, []protocol.GateStatus{failed, passed}},
		"of a gate that is removed":   {[]journal.Record{ran(unit, "t4", gates.Failed), ran(lint, "t4", gates.Passed), gatedOrders(lint)}, []protocol.GateStatus{passed}},
		"of a definition that is old": {[]journal.Record{ran(unit, "t4", gates.Failed), ran(lint, "t4", gates.Passed), gatedOrders(unit, other)}, []protocol.GateStatus{failed}},
	} {
		s := read(t, write(t, append(closed, tc.more...)...))
		if diff := cmp.Diff(tc.want, s.ShownGates()["form"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestShownGatesAreBounded: the newest 32 tasks have results, however many there are, and the gates before the delivery beside them.
func TestShownGatesAreBounded(t *testing.T) {
	o := &protocol.Orders{Gates: []protocol.Gate{unit}, Delivery: protocol.Delivery{Gates: []protocol.Gate{lint}}}
	records := []journal.Record{attempt1, base, {Orders: o}, {DeliveryGateRan: &gates.Result{Gate: "lint", Definition: gates.Sum(lint), Tree: "bt", State: gates.Failed, Output: "long"}}}
	for n := range 40 {
		name := fmt.Sprint("form-", n)
		o.Tasks = append(o.Tasks, protocol.Task{Name: name, Gates: []string{"unit"}})
		i := journal.Intent{Sequence: int64(n + 1), Tree: "bt", Delivery: "b", OldDelivery: "b", Completes: name, TreeVerdict: protocol.Valid, Report: protocol.CheckpointReport{Settled: true, Task: name}}
		g := ran(unit, "bt", gates.Passed)
		if n == 0 {
			g = ran(unit, "bt", gates.Failed)
		}
		g.GateRan.Task, g.GateRan.Result.Output = name, "long"
		records = append(records, journal.Record{TaskBegun: &journal.TaskBegun{Name: name}}, journal.Record{TaskEnded: &journal.TaskEnded{Name: name}}, journal.Record{Intent: &i},
			journal.Record{Done: &journal.Done{Sequence: i.Sequence}}, g)
		if n == 0 {
			again := ran(unit, "bt", gates.Passed)
			again.GateRan.Task = name
			records = append(records, again)
		}
	}
	var s journal.State
	for _, r := range records {
		var err error
		if s, err = s.Apply(r); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
	}
	shown := s.ShownGates()
	if len(shown) != protocol.MaxTaskGates+1 || shown["form-7"] != nil || len(shown["form-8"]) != 1 || len(shown["form-39"]) != 1 || len(shown[""]) != 1 || shown[""][0].State != "Failed" {
		t.Errorf("%d: %v", len(shown), shown)
	}
	for _, g := range s.Gated {
		if g.Results[0].Output != "" {
			t.Errorf("the state of %q keeps an output", g.Task)
		}
	}
}

// TestWalk gives the states of Apply.
func TestWalk(t *testing.T) {
	closed := []journal.Record{attempt1, base, gatedOrders(unit, lint), begun, started, {TaskEnded: &journal.TaskEnded{Name: "form"}}, held, heldDone, good, goodDone,
		ran(unit, "t4", gates.Failed), ran(lint, "t4", gates.Passed), attempt2}
	var want journal.State
	var walk journal.Walk
	for i, r := range closed {
		var err error
		if want, err = want.Apply(r); err != nil {
			t.Fatal(err)
		}
		got, err := walk.Next(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after record %d (-want +got):\n%s", i+1, diff)
		}
	}
	if _, err := (&journal.Walk{}).Next(base); err == nil {
		t.Error("a journal without an attempt is none")
	}
}
