// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

// bared is a turn of the main thread without tools.
type bared struct {
	// Thread in which a later answer to a request with tools says that the agent goes on; 0 for any, when the agent was started again: its
	// conversation may be taken for another one.
	Thread int `json:"thread"`
	// Turn that had no tools, and the Finding that led to it.
	Turn    int64           `json:"turn"`
	Finding anomaly.Finding `json:"finding"`
}

// before says that a request was made after the turn, by the same agent.
func (b bared) before(x *exchange) bool {
	return b.Thread == 0 || b.Thread == x.thread && int64(x.turn) > b.Turn
}

// goesOn forgets the turn without tools. This is kept at once: the end of the agent may follow at any time.
func goesOn(s *Service) {
	s.record.Bared = nil
	s.keep(true)
}

// Ended says that the agent has ended with exit code 0, and whether it has a session. When its last turn had no tools its task is not done, and an Act
// says what follows. It takes the place of one that would have held or changed what the agent worked on.
func Ended(s *Service, session bool) {
	if s == nil { // there is no agent
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	terms, now, b, a := s.options.Terms(), s.options.Now(), s.record.Bared, s.record.Act
	if b == nil || s.record.Task != terms.Task || a != nil && a.Rung != policy.RungHold && a.Rung != policy.RungRollback {
		return
	}
	s.record.Act = nil
	at := steering.TurnContext{Thread: b.Finding.Thread, Turn: b.Turn, Now: now, Clock: true}
	step := s.record.Steering.Ended(b.Finding, at, session, terms.Rules)
	s.options.Log.Warn("The agent ended with a turn without tools: its task is not done", "turn", b.Turn, "evidence", step.Finding.Evidence, "rung", string(step.Rung))
	s.outbox.note(terms.Task, at, step)
	want(s, step)
	s.tell(terms, now)
}
