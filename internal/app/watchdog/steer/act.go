// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

// Act is what steering wants done with the whole run, because words have not helped. Until it is settled, no request is sent on. It is
// kept with what is remembered, so that a watchdog that begins anew wants it too.
type Act struct {
	// ID, by which it is done once. No request of a person has one like it.
	ID string `json:"id"`
	// Task that it is about.
	Task string `json:"task"`
	// Rung is Hold, Rollback, Restart or Block; or NoTools, when the agent has ended with such a turn and is to go on.
	Rung policy.Rung `json:"rung"`
	// Thread whose model is told what came of it.
	Thread int `json:"thread"`
	// Evidence says for people what is wrong.
	Evidence string `json:"evidence"`
	// Message for the agent where the act was done, and Otherwise where it was not.
	Message   string `json:"message"`
	Otherwise string `json:"otherwise,omitempty"`
	// Until the agent is held at most; zero where a person must act.
	Until time.Time `json:"until,omitzero"`
}

// Wanted says that there is an Act to carry out.
func (s *Service) Wanted() <-chan struct{} {
	if s == nil { // there is no agent
		return nil
	}
	return s.gate.wanted
}

// Act that is wanted; nil for none.
func (s *Service) Act() *Act {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record.Act == nil {
		return nil
	}
	a := *s.record.Act
	return &a
}

// want an act. One is wanted at a time.
func want(s *Service, step steering.Step) {
	if s.record.Act != nil {
		return
	}
	// The journal knows more of them where what was remembered is lost: an id that was used stands for what is done.
	s.record.Acts = max(s.record.Acts, s.options.Recorder.Recorded().Sequence) + 1
	s.record.Act = &Act{
		ID: fmt.Sprintf("%s%d", protocol.SteeringRequests, s.record.Acts), Task: s.record.Task, Rung: step.Rung, Thread: step.Thread,
		Evidence: step.Finding.Evidence, Message: step.Message, Otherwise: step.Otherwise, Until: step.Until,
	}
	s.write(nil, true)
	s.gate.shut()
}

// gate is what requests wait at while an act is wanted.
type gate struct {
	// wanted says that there is an act to carry out.
	wanted chan struct{}
	// settled is closed when an act is. born counts the agents whose conversation was forgotten, because they have ended.
	settled chan struct{}
	born    int64
}

func newGate() gate { return gate{wanted: make(chan struct{}, 1), settled: make(chan struct{})} }

// shut calls the one who carries out what is wanted.
func (g *gate) shut() {
	select {
	case g.wanted <- struct{}{}:
	default:
	}
}

// open lets the requests go on.
func (g *gate) open() {
	close(g.settled)
	g.settled = make(chan struct{})
}

// Settle an act that was done, or cannot be. After a restart, and when the work has ended, nothing is remembered of the conversation but what
// was tried; the requests of the agent that was ended are not sent on.
func (s *Service) Settle(id string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.record.Act
	if a == nil || a.ID != id {
		return
	}
	s.record.Act = nil
	switch {
	case done && a.Rung == policy.RungRestart:
		s.outbox.ended(&s.record)
		s.record = s.record.next(a.Task, s.record.Steering.Anew())
		s.gate.born++
	case done && a.Rung == policy.RungBlock:
		s.outbox.ended(&s.record)
		s.record = s.record.next(a.Task, steering.State{})
		s.gate.born++
	case a.Rung == policy.RungNoTools: // it is told when it is started
		if done && s.record.Bared != nil {
			delete(s.record.Bare, s.record.Bared.Thread) // a client may put what it is told into the last message
			s.record.Bared.Thread = 0
			s.gate.born++
		}
	case done:
		s.record.later(a.Thread, a.Message)
	default:
		s.record.later(a.Thread, a.Otherwise)
	}
	s.write(nil, true)
	s.gate.open()
	s.tell(s.options.Terms(), s.options.Now())
}

// held keeps a request back until nothing is wanted any more. It says whether the request may be sent on then: not where who has sent it has
// hung up or was ended.
func held(ctx context.Context, s *Service, born int64) bool {
	for s.record.Act != nil && s.gate.born == born {
		settled := s.gate.settled
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-settled:
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return false
		}
	}
	return s.gate.born == born
}
