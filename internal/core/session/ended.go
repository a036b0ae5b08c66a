// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// Bared is a turn of the main thread without tools.
type Bared struct {
	// Thread in which a later answer to a request with tools shows that the agent continues. After a restart of the agent it is 0 for any
	// thread, because the conversation may look like a new one.
	Thread int `json:"thread"`
	// Turn of the run that had no tools, and the Finding that led to it.
	Turn    int64           `json:"turn"`
	Finding anomaly.Finding `json:"finding"`
}

// before says that a request was made after the turn, by the same agent.
func (b Bared) before(x Exchange) bool {
	return b.Thread == 0 || b.Thread == x.thread && x.turn > b.Turn
}

// Ended records that the agent has ended with exit code 0, and whether it has a session. If its last turn had no tools, its task is not
// done, and an Act says what follows. That Act replaces one that would have held or changed the agent's work.
func (s *State) Ended(f Facts, session bool) Effects {
	b, a := s.Bared, s.Act
	if b == nil || s.Task != f.Terms.Task || a != nil && a.Rung != policy.RungHold && a.Rung != policy.RungRollback {
		return Effects{}
	}
	d := &decision{s: s, f: f}
	s.Act = nil
	at := steering.TurnContext{Thread: b.Finding.Thread, RunTurn: b.Turn, Now: f.Now, Clock: true}
	step := s.Steering.Ended(b.Finding, s.Anomalies.Episode(b.Finding.Kind, b.Finding.Thread), at, session, f.Terms.Rules)
	d.want(step, d.note(at, step, true))
	d.tell()
	return d.effects(nil)
}
