// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Measure of steering: an act on the whole run of an agent in trouble, after messages have not helped. The watchdog holds the agent's model
// call until the measure is over.
type Measure struct {
	// ID of the measure: the watchdog carries out one ID once.
	ID string
	// Rung is Hold, Rollback, Restart or Block; or NoTools, if the agent ended with such a turn and must continue in its session.
	Rung policy.Rung
	// Message tells users what is wrong.
	Message string
	// Until is the latest end of a hold; zero if a user must act. Only for Hold.
	Until time.Time
	// Over says that there is nothing more to do, and Done that the watchdog carried it out.
	Over, Done bool
}

// Steered: steering wants a measure. Steering sends it again after a crash.
type Steered struct{ Measure Measure }

func (e Steered) apply(s *State, _ time.Time) {
	m := e.Measure
	s.Measure = &m
	i := s.Current()
	if i < 0 {
		m.Over = true
		return
	}
	t := &s.Tasks[i]
	again := m.Rung == policy.RungRestart && t.Restart == m.ID || m.Rung == policy.RungNoTools && t.Continues == m.ID && t.Phase == Pending
	if m.Rung == policy.RungRestart && (again || t.Phase == Running) {
		t.RestartReason = m.Message
	}
	switch {
	case again && !t.Dropped:
	case t.Phase != Running || t.Dropped:
		m.Over = true
	case m.Rung == policy.RungNoTools:
		t.Phase, t.Continues = Pending, m.ID
	case m.Rung == policy.RungRestart:
		t.Phase, t.Restart, t.Back, t.Correction, t.Completed = Pending, m.ID, false, "", time.Time{}
	case m.Rung == policy.RungBlock:
		t.Rejected, t.RejectedReason = m.Message, protocol.ReasonAnomalyPersists
	}
}

// Settled is the measure that is over, if there is one.
func (s State) Settled() (Measure, bool) {
	if s.Measure == nil {
		return Measure{}, false
	}
	m := *s.Measure
	ends := m.Rung == policy.RungNoTools || m.Rung == policy.RungRestart || m.Rung == policy.RungBlock
	if ends && !m.Over && s.Agent.Connected && !s.Agent.Leftovers { // no request of the ended agent is left
		m.Over, m.Done = true, true
	}
	return m, m.Over
}

// Settled: steering, which asked for the measure, knows that it is over.
type Settled struct{}

func (Settled) apply(s *State, _ time.Time) { s.Measure = nil }

// Released: the hold of the agent has reached its maximum time.
type Released struct{}

func (Released) apply(s *State, _ time.Time) {
	s.idle()
	s.settle(policy.RungHold, true)
}

// settle the measure of a rung.
func (s *State) settle(rung policy.Rung, done bool) {
	if s.Measure != nil && s.Measure.Rung == rung && !s.Measure.Over {
		m := *s.Measure
		m.Over, m.Done = true, done
		s.Measure = &m
	}
}

// left says that the agent of the measure has ended by itself.
func (s *State) left() {
	for _, rung := range []policy.Rung{policy.RungHold, policy.RungRollback} {
		s.settle(rung, false)
	}
}

// wentBack takes the result of a rollback that steering wanted.
func (s *State) wentBack(id string, went bool) {
	if s.Measure != nil && s.Measure.ID == id {
		s.settle(policy.RungRollback, went)
	}
	if i := s.Current(); i >= 0 && s.Tasks[i].Restart == id {
		s.Tasks[i].Back = true
	}
}

// onHold says that the agent waits for a user to look.
func (s State) onHold() bool {
	return s.Measure != nil && s.Measure.Rung == policy.RungHold && !s.Measure.Over && s.Agent.Running && !s.drops()
}

// measured carries out a rollback that steering wants.
func measured(s State, now time.Time) (Action, bool) {
	m := s.Measure
	if s.Seal || m == nil || m.Over || m.Rung != policy.RungRollback || !s.Agent.Connected {
		return Action{}, false
	}
	return s.goBack(m.ID, m.Message, now), true
}

// goBack to the last valid checkpoint, for a reason in words.
func (s State) goBack(id, reason string, now time.Time) Action {
	if now.Before(s.Checkpoints.RetryAt) {
		return Action{Until: s.Checkpoints.RetryAt}
	}
	return Action{Kind: Rollback, Task: s.current(), Trigger: protocol.TriggerSteering, Reason: reason,
		Request: protocol.Request{ID: id, Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: protocol.RollbackFull}}}
}
