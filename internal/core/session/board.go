// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
)

// Post changes the notices about its work for the agent. It gets them with its next model call or, if it calls no model, next to the next
// result of one of the watchdog's tools. The caller stores them at once if the change says so.
func (s *State) Post(f Facts, change func(*notice.Board) (keep bool)) Effects {
	d := &decision{s: s, f: f}
	if f.Terms.Task != "" {
		d.begin(f.Terms.Task) // no request may have said yet that there is another
	}
	d.e.Keep = change(&s.Board)
	return d.effects(nil)
}

// posted is the notice about the agent's work in this request of the main thread, behind the given number of entries.
func (d *decision) posted(turn conversation.Turn, at int) due {
	if turn.Kind != conversation.KindMain || turn.Again {
		return due{}
	}
	if d.tick(); d.f.Reach.Lines { // it gets only lines
		return due{}
	}
	d.s.Board.Keep(func(after int) bool { return d.s.shows(turn.Thread, after) })
	return d.board(at)
}

// board is what stands on it, behind the given number of entries.
func (d *decision) board(at int) due {
	text, board := d.s.Board.Note(at)
	return due{text, func() { d.s.Board, d.e.Told = board, text }}
}

// shows says whether a note of a thread is still there, behind the given number of entries.
func (s *State) shows(thread, after int) bool {
	x := s.thread(thread)
	cut := slices.ContainsFunc(x.Cuts, func(c dialect.Cut) bool { return c.From < after && after <= c.To })
	return !cut && slices.ContainsFunc(x.Notes, func(n dialect.Note) bool { return n.After == after })
}
