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
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

const (
	// maxNotes of a thread are remembered. Of more, the oldest half goes at once: each that is missing changes the request from there on, and a
	// provider has not cached what follows.
	maxNotes = 128
	// maxUnsaid bounds what waits to be said to a thread, in bytes: some six messages.
	maxUnsaid = 4096
)

// forget what was said behind messages that are not there any more, and to threads that nothing is remembered of.
func (s *State) forget(turn conversation.Turn) {
	gone := func(thread int) bool {
		return !slices.ContainsFunc(s.Book.Threads, func(t *conversation.Thread) bool { return t.ID == thread })
	}
	maps.DeleteFunc(s.Notes, func(thread int, _ []dialect.Note) bool { return gone(thread) })
	maps.DeleteFunc(s.Cuts, func(thread int, _ []dialect.Cut) bool { return gone(thread) })
	maps.DeleteFunc(s.Bare, func(thread, messages int) bool {
		return gone(thread) || thread == turn.Thread && messages != turn.Messages
	})
	maps.DeleteFunc(s.Unsaid, func(thread int, _ string) bool { return gone(thread) })
	s.align(turn)
}

// align what was said in a thread, and what was left out of it, with its new request. What stood behind something that was in one request alone
// stands behind what comes before that.
func (s *State) align(turn conversation.Turn) {
	notes, cuts := s.Notes[turn.Thread], s.Cuts[turn.Thread]
	if turn.Fleeting && turn.Aligned > 0 {
		for i := range notes {
			notes[i].After = min(notes[i].After, turn.Aligned)
		}
		if turn.Kind == conversation.KindMain {
			s.Directed = s.Directed.Within(turn.Aligned)
			s.Board.Within(turn.Aligned)
		}
	}
	gone := func(c dialect.Cut) bool { return c.To > turn.Aligned }
	notes = slices.DeleteFunc(notes, func(n dialect.Note) bool {
		// What says that something is left out goes with that.
		return n.After > turn.Aligned || slices.ContainsFunc(cuts, func(c dialect.Cut) bool { return gone(c) && c.From == n.After })
	})
	if delete(s.Notes, turn.Thread); len(notes) > 0 {
		s.Notes[turn.Thread] = notes
	}
	cuts = slices.DeleteFunc(cuts, gone)
	if delete(s.Cuts, turn.Thread); len(cuts) > 0 {
		s.Cuts[turn.Thread] = cuts
	}
}

// next forgets everything but this, when the agent begins anew, on the same task or another. What waits to be said by another way than a request is for
// any agent.
func (s *State) next(task string, tried steering.State) {
	s.Board.Anew()
	*s = State{
		Task: task, Anomalies: anomaly.State{Task: task}, Steering: tried, Board: s.Board, Turns: s.Turns, Attempt: s.Attempt, Word: s.Word, Step: s.Step,
		born: s.born, moved: s.moved, reported: s.reported, redactor: s.redactor,
	}
}

// remember what was said, and what was left out.
func (s *State) remember(thread, messages int, said dialect.Steering) {
	if s.Notes == nil {
		s.Notes = map[int][]dialect.Note{}
	}
	if s.Cuts == nil {
		s.Cuts = map[int][]dialect.Cut{}
	}
	if s.Bare == nil {
		s.Bare = map[int]int{}
	}
	if said.NoTools {
		s.Bare[thread] = messages
	}
	if s.Notes[thread] = said.Notes; len(said.Notes) > maxNotes {
		s.Notes[thread] = slices.Clone(said.Notes[len(said.Notes)-maxNotes/2:])
		s.Stood = false // what stands may have been said in one of them
	}
	if delete(s.Cuts, thread); len(said.Cuts) > 0 {
		s.Cuts[thread] = said.Cuts
	}
}

// later is what has to be said with a thread's next request, beside what waits already. The newest has room.
func (s *State) later(thread int, text string) {
	if text == "" {
		return
	}
	if s.Unsaid == nil {
		s.Unsaid = map[int]string{}
	}
	waiting := s.Unsaid[thread]
	for waiting != "" && len(both(waiting, text)) > maxUnsaid {
		_, waiting, _ = strings.Cut(waiting, between)
	}
	s.Unsaid[thread] = both(waiting, text)
}
