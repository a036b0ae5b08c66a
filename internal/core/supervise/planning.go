// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Planning is the known state of the plan that a model makes of the work.
type Planning struct {
	// On: a model divides the work. Approval: a user must approve its plan before an agent starts.
	On, Approval bool
	// Wanted: the first plan is still to be made.
	Wanted bool
	// Made is the newest plan.
	Made Made
	// Failed is the newest question in this attempt that has led to no plan; nil for none.
	Failed *Planned
}

// Made is a plan that a model has made. The zero Made is that of work without a plan.
type Made struct {
	// Hash of the plan; empty for none.
	Hash string
	// Request of the user or the assessor for it, by its id; empty for the first plan.
	Request string
	// Approved: a user has approved it.
	Approved bool
}

// follow what the orders say of planning. Asked: a model has made the first plan, or could not.
func (p *Planning) follow(o protocol.Orders, made Made, asked, begun bool) {
	p.On, p.Approval, p.Made = o.Planning != "", o.Planning == protocol.PlanningApprove, made
	// With an approval nothing begins without a plan, so that another attempt asks again.
	again := p.Approval && made.Hash == "" && p.Failed == nil
	p.Wanted = p.On && !begun && (!asked || again)
}

// plans says whether a model is to be asked before an agent starts, and for which request of a user; the zero request for the first plan.
func (s State) plans() (protocol.Request, bool) {
	if !s.Planning.On {
		return protocol.Request{}, false
	}
	if i := slices.IndexFunc(s.Requests, func(r protocol.Request) bool { return r.Kind == protocol.RequestReplan }); i >= 0 {
		return s.Requests[i], true
	}
	if r, wanted := s.replans(); wanted {
		return r, true
	}
	return protocol.Request{}, s.Planning.Wanted
}

// unplanned is the final report of an attempt whose agent may not start before a user has acted on the plan.
func (s State) unplanned() (protocol.FinalReport, bool) {
	p := s.Planning
	f := protocol.FinalReport{Head: s.Delivery.Head}
	switch {
	case !p.Approval || p.Made.Approved:
		return f, false
	case p.Made.Hash != "":
		f.Outcome, f.Reason = protocol.OutcomePlanProposed, protocol.ReasonPlanApprovalRequired
		f.Message = "a model has proposed the plan " + p.Made.Hash
		return f, true
	case p.Failed != nil && !s.begun():
		f.Outcome, f.Reason = protocol.OutcomeBlocked, protocol.ReasonPlannerUnavailable
		f.Message = "no model has proposed a plan that can be used: " + p.Failed.Missing
		return f, true
	}
	return f, false
}

// unconfirmedPlan says that journaled orders have a request that decides what the agent starts with. The watchdog waits until the manager says whether the
// request still stands.
func (s State) unconfirmedPlan() bool {
	p := s.Planning
	return slices.ContainsFunc(s.Unconfirmed, func(r protocol.Request) bool {
		switch r.Kind {
		case protocol.RequestReplan:
			return p.On && p.Made.Request != r.ID
		case protocol.RequestApprovePlan:
			return p.Approval && !p.Made.Approved && p.Made.Hash == r.Hash
		}
		return false
	})
}

// unconfirmedWork says that journaled orders have a request for a rollback or a checkpoint, which comes before a delivery. The watchdog waits until the
// manager says whether the request still stands; before that, it cannot report a delivery either.
func (s State) unconfirmedWork() bool {
	return slices.ContainsFunc(s.Unconfirmed, func(r protocol.Request) bool {
		return r.Kind == protocol.RequestRollback || r.Kind == protocol.RequestCheckpoint
	})
}

// begun says that the agent has worked on a task.
func (s State) begun() bool {
	return slices.ContainsFunc(s.Tasks, func(t Task) bool { return t.Begun || t.over() })
}

// approve answers a request to approve a plan.
func (s State) approve(r protocol.Request) (Action, bool) {
	p := s.Planning
	switch {
	case p.Made.Approved && r.Hash == p.Made.Hash:
		return Action{Kind: Answer, Answer: protocol.RequestReport{ID: r.ID, OK: true, Message: "the plan is approved"}}, true
	case !p.Approval:
		return refuse(r.ID, "spec.planning is not Approve: no plan needs an approval"), true
	case p.Wanted:
		return Action{}, false
	case p.Made.Hash == "":
		return refuse(r.ID, "there is no plan to approve"), true
	case r.Hash != p.Made.Hash:
		return refuse(r.ID, fmt.Sprintf("the plan has the hash %s: look at status.run.plan, and approve that hash with a new id", p.Made.Hash)), true
	}
	return Action{Kind: ApprovePlan, Request: r, Answer: protocol.RequestReport{ID: r.ID, OK: true, Message: "the plan is approved"}}, true
}

// replan answers a request for another plan, once the watchdog has asked the model. Until then it waits for the agent's next start.
func (s State) replan(r protocol.Request) (Action, bool) {
	p := s.Planning
	switch {
	case p.Made.Request == r.ID:
		return Action{Kind: Answer, Answer: protocol.RequestReport{ID: r.ID, OK: true, Message: "status.run.plan has the new plan, with the hash " + p.Made.Hash}}, true
	case p.Failed != nil && p.Failed.Request == r.ID:
		return refuse(r.ID, "no model has proposed another plan that can be used, and the tasks stay as they are: "+p.Failed.Missing), true
	case !p.On:
		return refuse(r.ID, "spec.planning is None: list the milestones in spec.plan, or set spec.planning to Auto or Approve"), true
	case s.Seal:
		return refuse(r.ID, "the work is done, and no agent starts any more"), true
	}
	return Action{}, false
}

// wantsCheckpoint says that a user waits for a checkpoint.
func (s State) wantsCheckpoint() bool {
	return slices.ContainsFunc(s.Requests, func(r protocol.Request) bool { return r.Kind == protocol.RequestCheckpoint })
}

// Planned: a model has divided the work, or could not. Orders with its tasks follow.
type Planned struct {
	// Request of the user or the assessor for it, by its id; empty for the first plan.
	Request string
	// Missing says why there is no plan; empty if there is one.
	Missing string
}

func (e Planned) apply(s *State, _ time.Time) {
	s.idle()
	s.Planning.Wanted = false
	if e.Missing != "" {
		s.Planning.Failed = &e
	}
}

// PlanApproved: the journal has that a user has approved the plan.
type PlanApproved struct {
	Answer protocol.RequestReport
}

func (e PlanApproved) apply(s *State, _ time.Time) {
	s.idle()
	s.Planning.Made.Approved = true
	s.answered([]string{e.Answer.ID})
}
