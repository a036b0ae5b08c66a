// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// restored is where the state machine continues, according to the journal.
func restored(j journal.State, seal bool, now time.Time) supervise.State {
	s := supervise.State{Seal: seal, Rules: supervise.RulesOf(j.Orders.Policy), Earlier: j.Final, MaxRetries: j.Orders.MaxRetries}
	s.Checkpoints.Last, s.Checkpoints.Unseen = now, !seal
	s.Agent.Leftovers = !seal && agentStarted(j.Tasks)
	if j.Breaker.Open {
		s.Checkpoints.Breaker, s.Checkpoints.Failures, s.Checkpoints.Failure = true, j.Breaker.Failures, j.Breaker.Fault
	}
	s.Delivery.Head, s.Delivery.Tree, s.Delivery.Pushed = j.Head().Commit, j.Head().Tree, j.Pushed
	s.Delivery.Gates, s.Delivery.Results, s.Delivery.Corrections = j.Orders.Delivery.Gates, j.Proofs, j.Spent
	if j.Squashed != nil {
		s.Delivery.Squashed = j.Squashed.Reason
	}
	s.Delivery.Changed = j.Base != nil && j.Promoted.Tree != j.Base.Tree
	names, continues := make([]string, 0, len(j.Orders.Tasks)+1), map[string]bool{}
	for _, t := range j.Orders.Tasks {
		names = append(names, t.Name)
		continues[t.Name] = t.Continue
	}
	if working := j.Working(); working != "" && !slices.Contains(names, working) {
		names = append(names, working)
	}
	for _, name := range names {
		have := j.Tasks[name]
		task := supervise.Task{Name: name, Phase: supervise.Pending, Begun: have.Begun, Listed: true, Dropped: have.Unlisted,
			Corrections: have.Corrections, Continue: continues[name], Failures: have.Failures, Rejected: have.Rejected, RejectedReason: cmp.Or(have.RejectedReason, protocol.ReasonAnswerRejected)}
		if have.Parked && have.Start == 0 && have.Before == 0 {
			task.Parked = have.Asked
		}
		if have.Parking {
			s.End, s.Parking = supervise.Await, have.Asked
		}
		switch {
		case have.Done:
			task.Phase = supervise.Done
		case have.Aborting != nil:
			aborts(&task, have, j.Requests)
			s.Rules = supervise.RulesOf(have.Policy)
		case have.Gating != "":
			task.Phase, task.Tree, task.Gates, task.Results, task.InPods = supervise.Gating, have.Gating, j.Orders.GatesOf(name), j.Results, have.InPods
			s.Rules = supervise.RulesOf(have.Policy)
		case have.Ended:
			task.Phase, task.ExitCode, task.Stopped, task.Failure = supervise.Exited, have.ExitCode, have.Stopped, have.Failure
			s.Rules = supervise.RulesOf(have.Policy)
		case have.Restarts():
			_, task.Back = j.Requests[have.Restart]
			task.Restart, s.Rules = have.Restart, supervise.RulesOf(have.Policy)
		case have.Begun:
			task.Phase, s.Rules = supervise.Running, supervise.RulesOf(have.Policy)
			if have.Start == 0 { // it has worked, and had to continue
				task.Continues = have.Continued
			}
		}
		s.Tasks = append(s.Tasks, task)
	}
	return s.Proved()
}

// agentStarted says that an agent was started in this attempt, so that processes of it may run until the runner says otherwise. The start of a task
// that has begun may not be noted.
func agentStarted(tasks map[string]journal.Task) bool {
	for _, t := range tasks {
		if t.Start != 0 || t.Before != 0 || t.Begun && !t.Ended {
			return true
		}
	}
	return false
}

// aborts continues the abort of a task. If the workspace could not go back in an earlier attempt, it is tried again.
func aborts(task *supervise.Task, have journal.Task, requests map[string]protocol.RequestReport) {
	task.Phase, task.ExitCode, task.Reason, task.Message = supervise.Aborting, have.ExitCode, have.Aborting.Reason, have.Aborting.Message
	went, known := requests[have.Aborting.ID]
	switch {
	case have.Aborted:
		task.Phase = supervise.Aborted
	case !known:
		task.Abort = have.Aborting.ID
	case went.OK:
		task.Abort, task.Back = have.Aborting.ID, true
	default:
		task.Decided = true
	}
}
