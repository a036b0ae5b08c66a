// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// drawGates are up to two gates, of which orders for a task and for the delivery may have the same ones.
func drawGates(t *rapid.T, what string) (list []protocol.Gate) {
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 1), 0, 2, rapid.ID).Draw(t, what) {
		list = append(list, protocol.Gate{Name: fmt.Sprint("g", n), Command: []string{fmt.Sprint(n)}, Timeout: time.Minute})
	}
	return list
}

// TestAPodRunsOneGate: whatever orders say meanwhile, and however its gate ends, the pod of a gate runs no other one and no agent, and its report names
// a gate that is required and has no result. An attempt with an agent runs none at all.
func TestAPodRunsOneGate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := supervise.State{Rules: supervise.Rules{MaxCorrections: rapid.IntRange(0, 1).Draw(t, "corrections"), MaxFailures: 3}}
		s.Delivery.Head, s.Delivery.Tree, s.Delivery.Changed = "c1", "t1", true
		s.Tasks = []supervise.Task{{Name: "form", Phase: supervise.Gating, Begun: true, Tree: "t1", InPods: true}}
		agent := rapid.IntRange(0, 4).Draw(t, "an agent's attempt") == 4
		if !agent {
			s.Seal, s.ForGate = true, gates.Sum(protocol.Gate{Name: "g0", Command: []string{"0"}, Timeout: time.Minute})
		}
		var orders protocol.Orders
		draw := func() {
			orders = protocol.Orders{Tasks: []protocol.Task{{Name: "form", Continue: rapid.Bool().Draw(t, "continue")}}, GatePods: true,
				Gates: drawGates(t, "gates"), Delivery: protocol.Delivery{Push: true, Branch: "b", Gates: drawGates(t, "delivery gates")}}
			for _, g := range orders.Gates {
				orders.Tasks[0].Gates = append(orders.Tasks[0].Gates, g.Name)
			}
			if rapid.IntRange(0, 2).Draw(t, "another task") == 2 {
				orders.Tasks = append(orders.Tasks, protocol.Task{Name: "save"})
			}
			if rapid.IntRange(0, 5).Draw(t, "drop") == 5 {
				orders.Tasks = []protocol.Task{{Name: "save"}}
			}
		}
		now, ran := epoch, 0
		draw()
		s = s.Apply(supervise.Ordered{Orders: orders}, now)
		s = s.Apply(supervise.Connected{}, now)
		for range 30 {
			now = now.Add(time.Minute)
			a := supervise.Next(s, now)
			switch a.Kind {
			case supervise.Start, supervise.Kill, supervise.Checkpoint, supervise.Drop, supervise.Abort:
				if !agent {
					t.Fatalf("%s in the pod of a gate", a.Kind)
				}
				return // the agent works
			case supervise.Gate:
				if ran++; ran > 1 || agent || gates.Sum(a.Gate) != s.ForGate {
					t.Fatalf("gate %s of task %q is the %dth in a pod for %s", a.Gate.Name, a.Task, ran, s.ForGate)
				}
			case supervise.Finish:
				checkProving(t, s, orders, a.Final)
				return
			}
			s = s.Begin(a)
			if rapid.IntRange(0, 3).Draw(t, "orders first") == 3 {
				draw()
				s = s.Apply(supervise.Ordered{Orders: orders}, now)
				if s.Doing == supervise.Gate && supervise.Next(s, now).Kind == supervise.Cancel {
					s = s.Begin(supervise.Action{Kind: supervise.Cancel}).Apply(supervise.CalledOff{}, now)
					continue
				}
			}
			s = carriedOut(t, s, a, now)
		}
		t.Fatal("the attempt does not end")
	})
}

// checkProving holds what a report says of the gate that is next.
func checkProving(t *rapid.T, s supervise.State, orders protocol.Orders, f protocol.FinalReport) {
	if f.Outcome != protocol.OutcomeProving {
		return
	}
	list, results := orders.Delivery.Gates, s.Delivery.Results
	if f.Task != "" {
		task, _ := s.Task(f.Task)
		list, results = orders.GatesOf(f.Task), task.Results
	}
	i := slices.IndexFunc(list, func(g protocol.Gate) bool { return gates.Sum(g) == f.Gate })
	if i < 0 || gates.Find(results, list[i], "t1") != nil {
		t.Fatalf("gate %s of task %q is next, of %+v with the results %+v", f.Gate, f.Task, list, results)
	}
}

// carriedOut is the state after an act in the pod of a gate.
func carriedOut(t *rapid.T, s supervise.State, a supervise.Action, now time.Time) supervise.State {
	switch a.Kind {
	case supervise.Gate:
		r := gates.Result{Gate: a.Gate.Name, Definition: gates.Sum(a.Gate), Tree: "t1",
			State: rapid.SampledFrom([]gates.State{gates.Passed, gates.Passed, gates.Passed, gates.Failed, gates.TimedOut, gates.NotStarted}).Draw(t, "result")}
		switch {
		case rapid.IntRange(0, 4).Draw(t, "missed") == 4:
			return s.Apply(supervise.Missed{Action: a}, now)
		case a.Task != "":
			return s.Apply(supervise.Gated{Task: a.Task, Result: r}, now)
		}
		return s.Apply(supervise.DeliveryGated{Result: r}, now)
	case supervise.Review:
		return s.Apply(supervise.Reviewed{PolicyHash: s.PolicyHash}, now)
	case supervise.AddTask:
		return s.Apply(supervise.Added{Task: fmt.Sprint("delivery/gates/", len(s.Tasks))}, now)
	case supervise.Push:
		return s.Apply(supervise.Pushed{Commit: s.Delivery.Head}, now)
	}
	return s
}
