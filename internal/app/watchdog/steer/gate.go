// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"

	"github.com/tidewaiter/tidewaiter/internal/core/session"
)

// gate is what requests wait at while an act is wanted.
type gate struct {
	// wanted says that there is an act to carry out.
	wanted chan struct{}
	// settled is closed when an act is; nil while none is wanted.
	settled chan struct{}
}

func newGate() gate { return gate{wanted: make(chan struct{}, 1)} }

// follow the act that is wanted now; nil for none. Requests wait while there is one.
func (g *gate) follow(act *session.Act) {
	switch {
	case act == nil && g.settled != nil:
		close(g.settled)
		g.settled = nil
	case act != nil:
		if g.settled == nil {
			g.settled = make(chan struct{})
		}
		call(g.wanted)
	}
}

// Wanted says that there is an Act to carry out.
func (s *Service) Wanted() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.gate.wanted
}

// Act that the session wants; nil for none.
func (s *Service) Act() *session.Act {
	return look(s, func(state *session.State) *session.Act {
		if state.Act == nil {
			return nil
		}
		a := *state.Act
		return &a
	})
}

// Settle an act that was done, or cannot be.
func (s *Service) Settle(id string, done bool) {
	s.with(func(state *session.State, f session.Facts) session.Effects { return state.Settle(f, id, done) })
}

// held keeps a request back until the session wants no act any more. It says whether to pass the request on then: not if its client has
// hung up or the agent has ended.
func (s *Service) held(ctx context.Context, born int64) bool {
	for s.state.Act != nil && s.state.Born() == born {
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
	return s.state.Born() == born
}
