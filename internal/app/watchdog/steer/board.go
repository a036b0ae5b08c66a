// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
)

// Post changes what the agent is to be told of its work: with its next call of a model or, where it asks none, beside the next result of one of the
// watchdog's tools. It is kept at once where the change says so.
func (s *Service) Post(change func(*notice.Board) (keep bool)) {
	if s == nil { // there is no agent
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if task := s.options.Terms().Task; task != "" {
		begin(s, task) // no request may have said yet that there is another
	}
	s.keep(change(&s.record.Board))
}

// posted is what the main thread is told of the agent's work in a turn, and what it was told of it then.
type posted struct {
	text  string
	board notice.Board
}

// posting decides what is told with this request, behind so many entries.
func (s *Service) posting(turn conversation.Turn, at int) posted {
	if turn.Kind != conversation.KindMain || turn.Again {
		return posted{}
	}
	if tick(s); s.options.Reach.Lines { // it is told by lines alone
		return posted{}
	}
	s.record.Board.Keep(func(after int) bool { return s.record.shows(turn.Thread, after) })
	text, board := s.record.Board.Note(at)
	return posted{text, board}
}

// shows says whether a note of a thread is still there, behind so many entries.
func (r *record) shows(thread, after int) bool {
	cut := slices.ContainsFunc(r.Cuts[thread], func(c dialect.Cut) bool { return c.From < after && after <= c.To })
	return !cut && slices.ContainsFunc(r.Notes[thread], func(n dialect.Note) bool { return n.After == after })
}

// told says that the agent was told it.
func (s *Service) told(p posted) {
	if p.text == "" {
		return
	}
	s.record.Board = p.board
	if s.options.Told != nil {
		s.options.Told(p.text)
	}
}

// Words are what is to be told beside the result of a tool; "" for nothing. They are given once, to an agent that asks no model.
func (s *Service) Words() string {
	words := s.voice.Words()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.Reach.Lines || s.record.asks() {
		return words
	}
	tick(s)
	text, board := s.record.Board.Note(0)
	if text == "" {
		return words
	}
	s.told(posted{text, board})
	s.keep(true)
	return both(words, text)
}
