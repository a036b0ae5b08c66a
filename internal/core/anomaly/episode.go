// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Episode of an anomaly, from the first finding until it is over: the last finding, and what steering did about it.
type Episode struct {
	Finding Finding `json:"finding"`
	// Held is the turn of its thread in which it was seen last.
	Held int64 `json:"held"`
	// Tried are the rungs that were climbed, in their order.
	Tried []policy.Rung `json:"tried,omitempty"`
	// RunTurn and At say when steering acted last.
	RunTurn int64     `json:"runTurn,omitempty"`
	At      time.Time `json:"at,omitzero"`
	// Causes of the emergency that the agent has a message about.
	Causes string `json:"causes,omitempty"`
}

// Climb records that steering has tried a rung, in a turn of the run; 0 for none.
func (e *Episode) Climb(rung policy.Rung, runTurn int64, now time.Time) {
	if !slices.Contains(e.Tried, rung) {
		e.Tried = append(e.Tried, rung)
	}
	e.RunTurn, e.At = runTurn, now
}

// Highest rung that was tried; Observe where none was.
func (e *Episode) Highest() policy.Rung {
	ladder := policy.Ladder()
	at := 0
	for _, r := range e.Tried {
		at = max(at, slices.Index(ladder, r))
	}
	return ladder[at]
}

// Episode of a kind in a thread; nil for none.
func (s *State) Episode(kind Kind, thread int) *Episode {
	if i := slices.IndexFunc(s.Episodes, func(e Episode) bool { return e.is(kind, thread) }); i >= 0 {
		return &s.Episodes[i]
	}
	return nil
}

func (e *Episode) is(kind Kind, thread int) bool {
	return e.Finding.Kind == kind && e.Finding.Thread == thread
}

// Recall records that steering tried a rung without a request in the episode of a finding. The state may know nothing else of that episode.
func (s *State) Recall(f Finding, rung policy.Rung, at time.Time) {
	e := s.Episode(f.Kind, f.Thread)
	if e == nil {
		f.Since = at
		s.Episodes = append(s.Episodes, Episode{Finding: f})
		e = &s.Episodes[len(s.Episodes)-1]
	}
	e.Climb(rung, e.RunTurn, at)
}

// Forget the episode of a kind in a thread: it is over.
func (s *State) Forget(kind Kind, thread int) {
	s.Episodes = slices.DeleteFunc(s.Episodes, func(e Episode) bool { return e.is(kind, thread) })
}
