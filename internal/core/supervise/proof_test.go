// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// proofs is a model of what is known of gates: which definitions have passed on which tree.
type proofs map[[2]string]bool

func (p proofs) all(list []protocol.Gate, tree string) bool {
	for _, g := range list {
		if !p[[2]string{gates.Sum(g), tree}] {
			return false
		}
	}
	return true
}

func drawDelivery(t *rapid.T) protocol.Delivery {
	d := protocol.Delivery{Push: rapid.Bool().Draw(t, "push"), Branch: "b", RequireApproval: rapid.Bool().Draw(t, "approval"),
		ApprovedCommit: rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(t, "approved")}
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 0, 3, rapid.ID).Draw(t, "gates") {
		// Two gates of policies may have one name.
		d.Gates = append(d.Gates, protocol.Gate{Name: fmt.Sprint("g", n/2), Command: []string{fmt.Sprint(n)}, Timeout: time.Minute})
	}
	return d
}

// TestNothingIsDeliveredWithoutAPass: whatever happens, in whichever kind of attempt and in whichever sequence, nothing is pushed, reported as
// delivered or put before an approver unless each gate that is required at that time has passed on the tree of the head.
func TestNothingIsDeliveredWithoutAPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known := proofs{}
		s := supervise.State{Rules: supervise.Rules{MaxCorrections: rapid.IntRange(0, 2).Draw(t, "corrections"), MaxFailures: 3}}
		s.Delivery.Head, s.Delivery.Tree, s.Delivery.Changed = "c1", "t1", true
		orders := protocol.Orders{Tasks: []protocol.Task{{Name: "form"}}, Delivery: drawDelivery(t)}
		kind := rapid.SampledFrom([]string{"agent", "seal", "gate"}).Draw(t, "run")
		if s.Seal = kind != "agent"; kind == "gate" {
			s.ForGate = gates.Sum(protocol.Gate{Name: "g0", Command: []string{"0"}, Timeout: time.Minute})
		}
		now := epoch
		hear := func() {
			s = s.Apply(supervise.Ordered{Orders: orders, Done: func(name string) bool { return name == "form" }}, now)
		}
		hear()
		s = s.Apply(supervise.Connected{}, now)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Minute)
			a := supervise.Next(s, now)
			ready := a.Kind == supervise.Push || a.Kind == supervise.Finish &&
				(a.Final.Outcome == protocol.OutcomeDelivered && s.Delivery.Changed && s.Delivery.Pushed != s.Delivery.Head || a.Final.Outcome == protocol.OutcomeReadyToMerge)
			if ready && !known.all(orders.Delivery.Gates, s.Delivery.Tree) {
				t.Fatalf("%s %+v although the gates %v have not passed on %s: %v", a.Kind, a.Final, orders.Delivery.Gates, s.Delivery.Tree, known)
			}
			if a.Kind == supervise.Finish {
				return
			}
			if a.Kind == supervise.Gate && a.Task != "" {
				t.Fatalf("a gate of task %q", a.Task)
			}
			s = s.Begin(a)
			switch rapid.SampledFrom([]string{"done", "done", "done", "broken off", "orders", "a checkpoint", "a rollback"}).Draw(t, "what happens") {
			case "orders":
				orders.Delivery = drawDelivery(t)
				hear()
			case "broken off":
				s = s.Apply(supervise.CalledOff{}, now)
			case "a checkpoint":
				tree := rapid.SampledFrom([]string{"t1", "t2"}).Draw(t, "tree")
				s = s.Apply(supervise.Taken{Settled: true, Head: "c" + tree[1:], HeadTree: tree, Changed: true}, now)
			case "a rollback":
				s = s.Apply(supervise.RolledBack{Went: true, Head: "c1", HeadTree: "t1", Changed: true}, now)
			default:
				s = done(t, s, a, known, now)
			}
		}
	})
}

// done is the state after an act has succeeded.
func done(t *rapid.T, s supervise.State, a supervise.Action, known proofs, now time.Time) supervise.State {
	switch a.Kind {
	case supervise.Gate:
		r := gates.Result{Gate: a.Gate.Name, Definition: gates.Sum(a.Gate), Tree: s.Delivery.Tree,
			State: rapid.SampledFrom([]gates.State{gates.Passed, gates.Passed, gates.Failed, gates.TimedOut, gates.NotStarted}).Draw(t, "result")}
		known[[2]string{r.Definition, r.Tree}] = r.State == gates.Passed
		return s.Apply(supervise.DeliveryGated{Result: r}, now)
	case supervise.Review:
		e := supervise.Reviewed{PolicyHash: s.PolicyHash}
		if rapid.Bool().Draw(t, "squash") {
			e.Head, e.Squashed = s.Delivery.Head+"s", "an earlier commit breaks a rule"
		}
		if rapid.Bool().Draw(t, "documents") {
			e.Head, e.Tree, e.Knowledge = s.Delivery.Head+"k", s.Delivery.Tree+"k", "; its last commit has a document"
		}
		return s.Apply(e, now)
	case supervise.AddTask:
		s = s.Apply(supervise.Added{Task: fmt.Sprint("delivery/gates/", len(s.Tasks))}, now)
		i := s.Current()
		s.Tasks[i].Phase = supervise.Done // its agent does it
		return s
	case supervise.Push:
		return s.Apply(supervise.Pushed{Commit: s.Delivery.Head}, now)
	}
	return s.Apply(supervise.Killed{}, now)
}
