// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// proved says whether each gate that is required now has passed on the tree of the head. Without it nothing is delivered.
func (d Delivery) proved() bool { return gates.Proved(d.Gates, d.Results, d.Tree) }

// proving runs the gate that the pod is for, unless it has its result or nobody requires it any more: then another attempt or the delivery follows.
// It runs once: what a gate leaves in ignored files and in /tmp is not put back.
func proving(s State, _ time.Time) (Action, bool) {
	if s.ForGate == "" {
		return Action{}, false
	}
	if i := s.Current(); i >= 0 {
		return s.provingTask(i), true
	}
	d := s.Delivery
	i := slices.IndexFunc(d.Gates, func(g protocol.Gate) bool { return gates.Sum(g) == s.ForGate })
	switch {
	case d.proved() && len(s.Requests) > 0: // what is left of them needs the workspace, before the delivery
		return Action{Kind: Finish, Final: protocol.FinalReport{Outcome: protocol.OutcomeProving, Reason: protocol.ReasonProving, Head: d.Head, Gate: s.ForGate,
			Message: "a request comes first, which needs the workspace"}}, true
	case i < 0 || s.Ran || gates.Find(d.Results, d.Gates[i], d.Tree) != nil:
		return Action{}, false
	case s.Used:
		return Action{Kind: Finish, Final: s.unanswered(d.Gates[i], "")}, true
	case !s.Agent.Connected:
		return Action{}, true
	}
	return Action{Kind: Gate, Gate: d.Gates[i]}, true
}

// unanswered is the final report of an attempt in whose pod a gate was started that has no result. It is one of a task, or before the delivery.
func (s State) unanswered(g protocol.Gate, task string) protocol.FinalReport {
	return protocol.FinalReport{Outcome: protocol.OutcomeProving, Reason: protocol.ReasonCheckpointFailed, Head: s.Delivery.Head, Gate: gates.Sum(g), Task: task,
		Message: fmt.Sprintf("gate %q has no result, and what it left in its pod could change the next one: it runs again in another pod", g.Name)}
}

// unproved is the final report of an attempt whose head has no pass of a required gate. There is none while an agent may still correct the work.
func (s State) unproved() (protocol.FinalReport, bool) {
	d := s.Delivery
	f := protocol.FinalReport{Head: d.Head}
	if g, more := gates.Next(d.Gates, d.Results, d.Tree); more {
		f.Outcome, f.Reason, f.Gate = protocol.OutcomeProving, protocol.ReasonProving, gates.Sum(g)
		f.Message = fmt.Sprintf("gate %q must pass on commit %s before the delivery", g.Name, short(d.Head))
		return f, true
	}
	results := gates.On(d.Results, d.Gates, d.Tree)
	f.Outcome, f.Reason, f.Message = protocol.OutcomeBlocked, protocol.ReasonGateFailed, gates.DeliveryMessage(short(d.Head), results)
	if slices.ContainsFunc(results, func(r gates.Result) bool { return r.State == gates.NotStarted }) {
		f.Reason = protocol.ReasonGateNotStarted
		return f, true
	}
	return f, d.Corrections >= s.Rules.MaxCorrections
}

// more is the final report of an attempt without an agent while task i is not done.
func (s State) more(i int) protocol.FinalReport {
	return protocol.FinalReport{Outcome: protocol.OutcomeUnfinished, Reason: protocol.ReasonCorrecting, Head: s.Delivery.Head,
		Message: fmt.Sprintf("an agent has to do task %q before the delivery", s.Tasks[i].Name)}
}

// DeliveryGated: a gate before the delivery has run.
type DeliveryGated struct {
	Result gates.Result
}

func (e DeliveryGated) apply(s *State, _ time.Time) {
	s.idle()
	s.Checkpoints.Failures, s.Checkpoints.Failure, s.Checkpoints.RetryAt = 0, protocol.Fault{}, time.Time{}
	s.Delivery.Results = gates.Kept(s.Delivery.Results, e.Result, s.Delivery.Gates)
}

// Added: an agent has another task.
type Added struct {
	// Task is its name.
	Task string
}

func (e Added) apply(s *State, _ time.Time) {
	s.idle()
	s.Tasks = append(s.Tasks, Task{Name: e.Task, Phase: Pending, Listed: true})
	s.Delivery.Corrections, s.Delivery.Results = s.Delivery.Corrections+1, gates.Lasting(s.Delivery.Results)
}
