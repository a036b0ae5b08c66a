// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// afterProposed wants an agent when a user has approved the plan, wants another one, or wants no approval any more. Until then nothing runs: no
// capacity and no running time is used. The locks and the area of the work stay.
func (s situation) afterProposed() nextRun {
	start := nextRun{granted: s.retryNow(), at: summary{phase: Preparing, reason: ReasonPreparing}}
	p := s.o.Run.Plan
	switch {
	case s.o.Spec.Planning != protocol.PlanningApprove:
		start.at.message = fmt.Sprintf("The plan needs no approval any more: attempt %d is about to start.", s.m.Attempt+1)
		return s.agentUnlessOver(start)
	case p != nil && (s.approved(p.Hash) || p.Approved && s.m.Job.Errand): // an errand ends as the attempt before it, whatever was approved since
		start.at.message = fmt.Sprintf("The plan has its approval: attempt %d is about to start.", s.m.Attempt+1)
		return s.agentUnlessOver(start)
	case s.replans():
		start.at.message = fmt.Sprintf("A user wants another plan: attempt %d is about to start.", s.m.Attempt+1)
		return s.agentUnlessOver(start)
	case s.o.Spec.suspended():
		return nextRun{at: suspendedSummary(s.o.Spec)}
	case p == nil || p.Hash == "": // its report was refused or is lost: another attempt would end in the same way
		return nextRun{at: summary{phase: AwaitingInput, reason: protocol.ReasonPlanApprovalRequired, message: fmt.Sprintf(
			"A model has proposed a plan, the agent's pod has ended, and status.run.plan does not have the plan. Ask for another one with spec.requests: [{id: %s, replan: {directive: …}}].", s.freeIDOf("replan"))}}
	}
	return nextRun{at: summary{phase: AwaitingInput, reason: protocol.ReasonPlanApprovalRequired, message: fmt.Sprintf(
		"A model has proposed a plan (tasks: %d), and the agent's pod has ended. Look at status.run.plan. Approve the plan with spec.requests: [{id: %s, approvePlan: {hash: %s}}], "+
			"or ask for another one with spec.requests: [{id: %s, replan: {directive: …}}].", p.Tasks, s.freeIDOf("approve"), p.Hash, s.freeIDOf("replan"))}}
}

// open are the requests of a kind that have no result.
func (s situation) open(kind RequestKind) []Request {
	return slices.DeleteFunc(slices.Clone(s.o.Spec.Requests), func(r Request) bool {
		_, reported := s.reported(r.ID)
		return r.Kind != kind || r.Refusal != "" || reported || s.answered(r.ID)
	})
}

// approved says that a user approves the plan with a hash.
func (s situation) approved(hash string) bool {
	return slices.ContainsFunc(s.open(RequestApprovePlan), func(r Request) bool { return r.Hash == hash })
}

// replans says that a user wants another plan.
func (s situation) replans() bool { return len(s.open(RequestReplan)) > 0 }

// notApproved says why a request to approve a plan is refused while no watchdog runs; empty while it is on its way.
func (s situation) notApproved(r Request) string {
	var p ModelPlan
	if s.o.Run != nil && s.o.Run.Plan != nil {
		p = *s.o.Run.Plan
	}
	switch {
	case p.Hash == "":
		return "There is no plan to approve."
	case p.Hash != r.Hash:
		return fmt.Sprintf("The plan has the hash %s: look at status.run.plan, and approve that hash with a new id.", p.Hash)
	}
	return ""
}
