// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// renewFreeze is when a freeze is renewed, before it ends by its limit (see FreezeLimit): an agent that runs in between
// would find that its calls have timed out.
const renewFreeze = FreezeLimit / 2

// FreezeLimit is how long an agent stays frozen whose watchdog is gone.
const FreezeLimit = time.Hour

// held freezes an agent that cannot continue before a user has acted, and lets it continue after that. If only a budget is used up,
// checkpoints are possible: users can request them.
func held(s State, now time.Time) (Action, bool) {
	live := s.Agent.Connected && s.Agent.Leftovers
	switch {
	case s.Seal:
		return Action{}, false
	case s.onHold() && !s.Measure.Until.IsZero() && !now.Before(s.Measure.Until):
		return Action{Kind: Release}, true
	case s.halted() && live && (!s.Agent.Frozen || !now.Before(s.Agent.FrozenAt.Add(renewFreeze))):
		return Action{Kind: Freeze}, true
	case !s.halted() && s.Agent.Frozen:
		return Action{Kind: Thaw}, true
	case !s.halted():
		return Action{}, false
	}
	var a Action
	if !s.Checkpoints.Breaker {
		a, _ = s.requested(now)
	}
	if live && a.Kind == Wait {
		a.Until = earliest(a.Until, s.Agent.FrozenAt.Add(renewFreeze))
		if s.onHold() {
			a.Until = earliest(a.Until, s.Measure.Until)
		}
	}
	return a, true
}

// earliest of the times that are set.
func earliest(times ...time.Time) (t time.Time) {
	for _, u := range times {
		if t.IsZero() || !u.IsZero() && u.Before(t) {
			t = u
		}
	}
	return t
}

// halted says that the agent cannot continue: checkpoints fail, the budget of its model calls is used up, or a user must look at its work.
func (s State) halted() bool { return s.Checkpoints.Breaker || s.overBudget() || s.onHold() }

// overBudget holds only for an agent at work: one that has ended, must end, or is done, needs no model call.
func (s State) overBudget() bool {
	i := s.Current()
	return s.Allowance.Exceeded != "" && s.Agent.Running && i >= 0 && s.Tasks[i].Completed.IsZero() && s.Tasks[i].Rejected == "" && s.Tasks[i].Restart == "" && !s.Tasks[i].Dropped
}

// Allowed: the gateway has reported the use of models, and whether the budget allows more.
type Allowed struct {
	Allowance protocol.Allowance
}

func (e Allowed) apply(s *State, _ time.Time) {
	s.Allowance = e.Allowance
	s.affords()
}

// affords ends a task for directives of reviewers after the last listed one if no budget is left for it. The work can be delivered, and does not wait for a
// user who raises the budget.
func (s *State) affords() {
	if i := s.Current(); i >= 0 && s.overBudget() && s.optional(i) {
		s.Tasks[i].Rejected, s.Tasks[i].RejectedReason = s.Allowance.Exceeded, protocol.ReasonBudgetExceeded
	}
}

// optional says that the work can be delivered without task i and without what follows it.
func (s State) optional(i int) bool {
	for _, t := range s.Tasks[i:] {
		if !t.over() && !protocol.Extra(t.Name) {
			return false
		}
	}
	return true
}

// FrozenNow: the agent is frozen until a user acts.
type FrozenNow struct{}

func (FrozenNow) apply(s *State, now time.Time) {
	s.idle()
	s.Agent.Frozen, s.Agent.FrozenAt = true, now
	s.Agent.obeys()
}

// ThawedNow: the agent runs again.
type ThawedNow struct{}

func (ThawedNow) apply(s *State, _ time.Time) {
	s.idle()
	s.Agent.Frozen = false
	s.Agent.obeys()
}

// Slipped: a freeze ended by its own limit.
type Slipped struct{}

func (Slipped) apply(s *State, _ time.Time) { s.Agent.Frozen = false }
