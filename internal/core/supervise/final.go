// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"cmp"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// verdict is the final report of a delivery, once there is one.
func (s State) verdict() (protocol.FinalReport, bool) {
	d := s.Delivery
	report := func(outcome, reason, message string) (protocol.FinalReport, bool) {
		if outcome != protocol.OutcomeBlocked {
			message += d.Knowledge + s.notDone()
		}
		if d.Squashed != "" && outcome != protocol.OutcomeBlocked {
			message += "; " + protocol.HistorySquashed + d.Squashed
		}
		f := protocol.FinalReport{Outcome: outcome, Reason: reason, Message: message, Head: d.Head}
		if outcome == protocol.OutcomeReadyToMerge {
			f.ProvedBy = gates.SumAll(d.Gates)
		}
		return f, true
	}
	switch {
	case s.nothingDone():
		return report(protocol.OutcomeBlocked, protocol.ReasonTasksAborted, "every task was aborted, so there is nothing to deliver: "+s.abortedTasks())
	case !d.Changed:
		return report(protocol.OutcomeDelivered, protocol.ReasonNothingChanged,
			"the work changed no file: the watchdog pushed nothing")
	case d.Pushed != "" && d.Pushed == d.Head:
		return report(protocol.OutcomeDelivered, protocol.ReasonDelivered,
			fmt.Sprintf("commit %s is branch %s", short(d.Head), d.Branch))
	case d.Refusal != nil:
		return report(protocol.OutcomeBlocked, d.Refusal.Reason, d.Refusal.Message)
	case d.Fault != nil && d.Failures >= maxDeliveries:
		return report(protocol.OutcomeBlocked, protocol.ReasonPushFailed,
			fmt.Sprintf("the watchdog tried the delivery %d times and failed, the last time with %s: %s", d.Failures, d.Fault.Reason, d.Fault.Message))
	case !d.Reviewed:
		return protocol.FinalReport{}, false
	case d.Objection != "":
		return report(protocol.OutcomeBlocked, cmp.Or(d.ObjectionReason, protocol.ReasonCheckpointInvalid),
			"the policy in effect now refuses the work: "+d.Objection)
	case !d.proved():
		return s.unproved()
	case d.RequireApproval && d.ApprovedCommit == "":
		return report(protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired,
			"the work is done and valid; approve it by setting spec.delivery.approvedCommit to "+d.Head)
	case d.RequireApproval && d.ApprovedCommit != d.Head:
		return report(protocol.OutcomeReadyToMerge, protocol.ReasonApprovalMismatch,
			fmt.Sprintf("spec.delivery.approvedCommit is %s, but the head is %s; look at the head and approve that",
				d.ApprovedCommit, d.Head))
	case !d.Push:
		return report(protocol.OutcomeDelivered, protocol.ReasonDelivered,
			fmt.Sprintf("commit %s stays on the trusted volume, because spec.delivery.push is false", short(d.Head)))
	}
	return protocol.FinalReport{}, false
}

// failed is the final report of an attempt whose task i failed.
func (s State) failed(i int) protocol.FinalReport {
	t := s.Tasks[i]
	f := protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: t.Reason, Message: t.Message, Head: s.Delivery.Head}
	switch t.Reason {
	case protocol.ReasonAgentFailed, protocol.ReasonAgentNotStarted:
		f.Outcome = protocol.OutcomeAgentFailed
	case protocol.ReasonProviderUnavailable:
		f.Outcome, f.Failure = protocol.OutcomeAgentFailed, t.Failure
	}
	if t.Continue && t.Reason == protocol.ReasonAgentFailed {
		f.TaskFailures = min(t.Failures, s.MaxRetries) + 1 // a user who asks for one retry after the other does not make it grow
	}
	return f
}

// interrupted is the final report of an attempt with orders to end.
func (s State) interrupted() protocol.FinalReport {
	f := protocol.FinalReport{Outcome: protocol.OutcomeSuspended, Reason: protocol.ReasonSuspended, Head: s.Delivery.Head,
		Message: "the watchdog ended the agent after a last checkpoint, and keeps the work"}
	if s.End == Await && s.Parking != nil {
		f = s.parked(*s.Parking)
	}
	if s.End == Stop {
		f.Outcome, f.Reason = protocol.OutcomeStopped, s.StopReason
	}
	if s.Checkpoints.Failures > 0 {
		f.Message = fmt.Sprintf("the watchdog ended the agent, but could not capture its last state (%s), which is still on the "+
			"workspace volume", s.Checkpoints.Failure.Message)
	}
	return f
}

// unstoppable is the final report of an attempt whose agent could not be stopped. The orders take effect all the same.
func (s State) unstoppable() protocol.FinalReport {
	f := protocol.FinalReport{Outcome: protocol.OutcomeAgentFailed, Reason: protocol.ReasonAgentUnstoppable, Head: s.Delivery.Head}
	if s.End != GoOn {
		f = s.interrupted()
	}
	f.Message = fmt.Sprintf("the watchdog could not stop the agent's processes %d times in a row, so it ended their container. What they "+
		"wrote since the last checkpoint is still on the workspace volume (%s)", s.Agent.Resisted, s.Agent.Resistance)
	return f
}

// repeated is the final report of an attempt without an agent that changed nothing about how the work stands.
func (s State) repeated() protocol.FinalReport {
	f := *s.Earlier
	f.Head = s.Delivery.Head
	return f
}

// unfinished is the final report of an attempt without an agent for work that an agent has not finished.
func (s State) unfinished(i int) protocol.FinalReport {
	return protocol.FinalReport{Outcome: protocol.OutcomeAgentFailed, Reason: protocol.ReasonAgentFailed, Head: s.Delivery.Head,
		Message: fmt.Sprintf("no attempt has finished task %q: there is nothing to deliver without an agent",
			s.Tasks[i].Name)}
}

// short is a commit as people write it.
func short(commit string) string {
	if len(commit) > 12 {
		return commit[:12]
	}
	return commit
}

// Status is the whole status of the run as it is reported.
func (s State) Status(base string) protocol.StatusReport {
	r := protocol.StatusReport{
		State: s.activity(), WorkspaceReady: true, AgentRunning: s.Agent.Running,
		Base: base, Head: s.Delivery.Head, Fault: s.fault(), Question: s.question(), BudgetWarning: s.Allowance.Warning, SupervisorCostWarning: s.Allowance.SupervisorCost,
		Conversation: s.conversation(), FilesModified: s.Place.Files, Directory: s.Place.Directory,
	}
	if u := s.Allowance.Usage; u.Calls > 0 {
		r.Usage = &u
	}
	for i, t := range s.Tasks {
		status := protocol.TaskStatus{Name: t.Name, State: string(t.Phase), Corrections: t.Corrections}
		if t.Phase == Failed || t.Phase == Aborted {
			status.Message = plain.Line(t.Message, protocol.MaxTaskMessage)
		}
		switch t.Phase {
		case Exited, Aborting: // to the outside, a task runs until its checkpoint has decided it
			status.State = protocol.TaskRunning
		case Gating:
			status.State = protocol.TaskGating
		case Done, Failed, Aborted:
			if t.Reason != protocol.ReasonAgentNotStarted {
				code := t.ExitCode
				status.ExitCode = &code
			}
		case Pending, Running: // as they are
		}
		r.Tasks = append(r.Tasks, status)
		if i == s.Current() {
			r.Task = t.Name
		}
	}
	return r
}

// question as it is reported: that of an agent that was ended for it stays.
func (s State) question() *protocol.Question {
	if f := s.Final; f != nil && f.Question != nil {
		return f.Question
	}
	if s.Question == nil {
		return s.Parking
	}
	return s.Question
}

// conversation as it is reported: an ended agent has no anomalies any more, unless it continues.
func (s State) conversation() *protocol.Conversation {
	i := s.Current()
	if s.Conversation == nil || s.Agent.Running || i >= 0 && s.Tasks[i].Continues != "" {
		return s.Conversation
	}
	c := *s.Conversation
	c.Anomalies, c.Pace, c.Health = nil, "", ""
	return &c
}

func (s State) fault() *protocol.Fault {
	switch {
	case s.Over():
		return nil
	case s.Checkpoints.Breaker:
		return &protocol.Fault{Reason: protocol.ReasonBreakerOpen, Message: fmt.Sprintf(
			"%d checkpoints in a row failed, the last one because %s; the watchdog has frozen the agent",
			s.Checkpoints.Failures, s.Checkpoints.Failure.Message)}
	case s.overBudget():
		return &protocol.Fault{Reason: protocol.ReasonBudgetExceeded, Message: s.Allowance.Exceeded}
	case s.onHold():
		return &protocol.Fault{Reason: protocol.ReasonAgentHeld, Message: s.Measure.Message}
	case s.Checkpoints.Failures > 0:
		f := s.Checkpoints.Failure
		return &f
	}
	return s.Delivery.Fault
}
