// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

const (
	// maxNotes of a thread are remembered. Of more, the oldest half goes at once: each that is missing changes the request from there on, and a
	// provider has not cached what follows.
	maxNotes = 128
	// maxUnsaid bounds what waits to be said to a thread, in bytes: some six messages.
	maxUnsaid = 4096
)

// thread with this number.
func (s *State) thread(thread int) *Thread {
	if s.Threads[thread] == nil {
		if s.Threads == nil {
			s.Threads = map[int]*Thread{}
		}
		s.Threads[thread] = &Thread{}
	}
	return s.Threads[thread]
}

// forget what was said behind messages that are not there any more, and everything of threads that the Book has forgotten.
func (s *State) forget(turn conversation.Turn) {
	known := func(thread int) bool {
		return slices.ContainsFunc(s.Book.Threads, func(t *conversation.Thread) bool { return t.ID == thread })
	}
	maps.DeleteFunc(s.Threads, func(thread int, _ *Thread) bool { return !known(thread) })
	s.Anomalies.Retain(known)
	s.Steering.Retain(known)
	said := s.thread(turn.Thread)
	if said.Bare != turn.Messages {
		said.Bare = 0
	}
	if turn.Fleeting && turn.Aligned > 0 && turn.Kind == conversation.KindMain {
		s.Directed = s.Directed.Within(turn.Aligned)
		s.Board.Within(turn.Aligned)
	}
	said.align(turn)
}

// align what was said, and what was left out, with a new request. What stood behind something that was in only one request stands behind
// what comes before that.
func (x *Thread) align(turn conversation.Turn) {
	if turn.Fleeting && turn.Aligned > 0 {
		for i := range x.Notes {
			x.Notes[i].After = min(x.Notes[i].After, turn.Aligned)
		}
	}
	gone := func(c dialect.Cut) bool { return c.To > turn.Aligned }
	x.Notes = slices.DeleteFunc(x.Notes, func(n dialect.Note) bool {
		// What says that something is left out goes with that.
		return n.After > turn.Aligned || slices.ContainsFunc(x.Cuts, func(c dialect.Cut) bool { return gone(c) && c.From == n.After })
	})
	x.Cuts = slices.DeleteFunc(x.Cuts, gone)
}

// next forgets everything but this, when the agent starts again, on the same task or another. What waits to be said by another way than a
// request is for any agent.
func (s *State) next(task string, tried steering.State) {
	s.Board.Anew()
	*s = State{
		Task: task, Anomalies: anomaly.State{Task: task, RunTurn: s.Turns}, Steering: tried, Board: s.Board, Turns: s.Turns, Attempt: s.Attempt, Word: s.Word, Step: s.Step,
		born: s.born, moved: s.moved, reported: s.reported, redactor: s.redactor,
	}
}

// remember what was said, and what was left out.
func (s *State) remember(thread, messages int, now dialect.Edits) {
	x := s.thread(thread)
	if now.NoTools {
		x.Bare = messages
	}
	if x.Notes, x.Cuts = now.Notes, now.Cuts; len(x.Notes) > maxNotes {
		x.Notes = slices.Clone(x.Notes[len(x.Notes)-maxNotes/2:])
		s.Stood = false // what stands may have been said in one of them
	}
}

// later is what has to be said with a thread's next request, in addition to what waits already. The newest has room.
func (s *State) later(thread int, text string) {
	if text == "" {
		return
	}
	x := s.thread(thread)
	for x.Unsaid != "" && len(both(x.Unsaid, text)) > maxUnsaid {
		_, x.Unsaid, _ = strings.Cut(x.Unsaid, between)
	}
	x.Unsaid = both(x.Unsaid, text)
}

// unsaid is what waits to be said to a thread.
func (s *State) unsaid(thread int) string {
	if x := s.Threads[thread]; x != nil {
		return x.Unsaid
	}
	return ""
}
