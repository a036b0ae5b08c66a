// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Gated are the newest results of the gates of a task, or of the gates before the delivery, for people. The watchdog decides by Results and Proofs
// instead. A result stays until the gate runs again.
type Gated struct {
	// Task is its name; empty for the gates before the delivery.
	Task    string         `json:",omitempty"`
	Results []gates.Result `json:",omitempty"`
}

// show keeps the result of a gate for people, if it is a gate before the delivery or of one of the newest protocol.MaxTaskGates tasks.
func (s *State) show(task string, r gates.Result) {
	r = gates.Result{Gate: r.Gate, Definition: r.Definition, Tree: r.Tree, State: r.State, ExitCode: r.ExitCode}
	now := Gated{Task: task}
	all := make([]Gated, 0, len(s.Gated)+1)
	for _, g := range s.Gated {
		if g.Task != task {
			all = append(all, g)
			continue
		}
		now.Results = slices.DeleteFunc(s.listed(g), func(have gates.Result) bool { return have.Gate == r.Gate && have.Definition == r.Definition })
	}
	now.Results = append(now.Results, r)
	all = append(all, now)
	surplus := -protocol.MaxTaskGates
	for _, g := range all {
		if g.Task != "" {
			surplus++
		}
	}
	s.Gated = slices.DeleteFunc(all, func(g Gated) bool { // the oldest ones
		if g.Task == "" || surplus <= 0 {
			return false
		}
		surplus--
		return true
	})
}

// listed are the results of gates that the orders list with the same definitions.
func (s State) listed(g Gated) []gates.Result {
	if s.Orders == nil {
		return nil
	}
	list, named := s.Orders.Delivery.Gates, func(string) bool { return true }
	if g.Task != "" {
		i := slices.IndexFunc(s.Orders.Tasks, func(t protocol.Task) bool { return t.Name == g.Task })
		if i < 0 {
			return nil
		}
		list, named = s.Orders.Gates, func(gate string) bool { return slices.Contains(s.Orders.Tasks[i].Gates, gate) }
	}
	var results []gates.Result
	for _, r := range g.Results {
		if named(r.Gate) && slices.ContainsFunc(list, func(have protocol.Gate) bool { return have.Name == r.Gate && gates.Sum(have) == r.Definition }) {
			results = append(results, r)
		}
	}
	return results
}

// ShownGates are the newest results of the gates that the orders list, by the name of the task; those before the delivery are at the empty name.
func (s State) ShownGates() map[string][]protocol.GateStatus {
	shown := map[string][]protocol.GateStatus{}
	for _, g := range s.Gated {
		for _, r := range s.listed(g) {
			shown[g.Task] = append(shown[g.Task], protocol.GateStatus{Name: r.Gate, State: string(r.State), ExitCode: r.ExitCode})
		}
	}
	return shown
}
