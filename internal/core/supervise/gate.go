// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// gate is the next gate of a task that has no result yet. All of them run, so that the agent hears of every failure at once.
func (t Task) gate() Action {
	for _, g := range t.Gates {
		if gates.Find(t.Results, g, t.Tree) == nil {
			return Action{Kind: Gate, Task: t.Name, Gate: g}
		}
	}
	return Action{}
}

// wanted says whether a gate is still one that the task at hand, or the delivery, has to pass.
func (s State) wanted(g protocol.Gate) bool {
	if s.ForGate != "" {
		return slices.ContainsFunc(s.Delivery.Gates, func(have protocol.Gate) bool { return gates.Sum(have) == gates.Sum(g) })
	}
	i := s.Current()
	return i >= 0 && s.Tasks[i].Phase == Gating && slices.ContainsFunc(s.Tasks[i].Gates, func(have protocol.Gate) bool { return gates.Sum(have) == gates.Sum(g) })
}

// ungate has a task whose workspace went back closed again: what its gates would prove is not there any more.
func (s *State) ungate() {
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.Phase == Gating {
			t.Phase, t.Gates, t.Tree, t.Results = Exited, nil, "", nil
		}
	}
}

// Gated: a gate has run.
type Gated struct {
	// Task is its name.
	Task   string
	Result gates.Result
}

func (e Gated) apply(s *State, _ time.Time) {
	s.idle()
	s.Checkpoints.Failures, s.Checkpoints.Failure, s.Checkpoints.RetryAt = 0, protocol.Fault{}, time.Time{}
	i := s.index(e.Task)
	if i < 0 || s.Tasks[i].Phase != Gating {
		return
	}
	t := &s.Tasks[i]
	t.Results = gates.With(t.Results, e.Result)
	t.prove(s.corrects(*t))
	s.givesUp(t)
}

// Proved is the state in which tasks whose gates all have results are decided.
func (s State) Proved() State {
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.Phase == Gating {
			t.prove(s.corrects(*t))
			s.givesUp(t)
		}
	}
	return s
}

// corrects says whether the agent may be started again to correct its task.
func (s State) corrects(t Task) bool {
	return s.End == GoOn && t.Corrections < s.Rules.MaxCorrections
}

// prove decides a task by the results of its gates, once each has one.
func (t *Task) prove(correct bool) {
	if t.Phase != Gating || t.Dropped || t.gate().Kind != Wait {
		return
	}
	results := gates.On(t.Results, t.Gates, t.Tree)
	failed, wrong := false, false
	for _, r := range results {
		failed = failed || r.State != gates.Passed
		wrong = wrong || r.State == gates.NotStarted
	}
	switch {
	case !failed:
		t.Phase = Done
	case wrong:
		t.Phase, t.Reason, t.Message = Failed, protocol.ReasonGateNotStarted, gates.Message(t.Name, results)
	case correct:
		t.Phase, t.ExitCode, t.Failure, t.Completed = Pending, 0, nil, time.Time{}
		t.Corrections, t.Correction = t.Corrections+1, gates.Correction(t.Gates, results)
	default:
		t.Phase, t.Reason, t.Message = Failed, protocol.ReasonGateFailed, gates.Message(t.Name, results)
	}
}
