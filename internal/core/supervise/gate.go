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
	var list []protocol.Gate
	switch i := s.Current(); {
	case i >= 0 && s.Tasks[i].Phase == Gating:
		list = s.Tasks[i].Gates
	case s.ForGate != "":
		list = s.Delivery.Gates
	}
	return slices.ContainsFunc(list, func(have protocol.Gate) bool { return gates.Sum(have) == gates.Sum(g) })
}

// gating is the final report of an attempt while task i waits for a gate that runs in another pod.
func (s State) gating(i int) protocol.FinalReport {
	t := s.Tasks[i]
	next := t.gate().Gate
	return protocol.FinalReport{Outcome: protocol.OutcomeProving, Reason: protocol.ReasonProving, Head: s.Delivery.Head, Gate: gates.Sum(next), Task: t.Name,
		Message: fmt.Sprintf("gate %q of task %q must pass on a fresh checkout of the work", next.Name, t.Name)}
}

// provingTask runs the gate of task i that the pod is for. Once it has a result, or nobody requires it any more, another attempt follows: for the next
// gate, with the agent, or for the next task.
func (s State) provingTask(i int) Action {
	t := s.Tasks[i]
	if t.Phase != Gating || t.Dropped {
		return Action{Kind: Finish, Final: s.withoutAgent(i)}
	}
	k := slices.IndexFunc(t.Gates, func(g protocol.Gate) bool { return gates.Sum(g) == s.ForGate })
	switch {
	case k < 0 || s.Ran || gates.Find(t.Results, t.Gates[k], t.Tree) != nil:
		return Action{Kind: Finish, Final: s.gating(i)}
	case s.Used:
		return Action{Kind: Finish, Final: s.unanswered(t.Gates[k], t.Name)}
	case !s.Agent.Connected:
		return Action{}
	}
	return Action{Kind: Gate, Task: t.Name, Gate: t.Gates[k]}
}

// withoutAgent is the final report of an attempt without an agent while task i, whose gates run in pods of their own, is not over.
func (s State) withoutAgent(i int) protocol.FinalReport {
	t, f := s.Tasks[i], s.more(i)
	switch {
	case t.Dropped:
		f.Message = fmt.Sprintf("the orders do not list task %q any more, and an attempt with the workspace ends it", t.Name)
	case t.Phase == Gating:
		return s.gating(i)
	case t.Phase == Failed:
		return s.failed(i)
	case t.Phase == Aborting:
		f.Message = fmt.Sprintf("task %q cannot be done, and an attempt with the workspace takes its changes out of it", t.Name)
	case t.Correction != "":
		f.Message = fmt.Sprintf("gates of task %q have failed, and an agent corrects its work", t.Name)
	}
	return f
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
	s.Ran = s.ForGate != ""
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
		t.Corrections, t.Correction = t.Corrections+1, gates.Correction(t.Gates, results, t.InPods)
	default:
		t.Phase, t.Reason, t.Message = Failed, protocol.ReasonGateFailed, gates.Message(t.Name, results)
	}
}
