// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// directed hears what the model has said, and decides which directives go into this request, behind the given number of entries of its list. What
// the agent's instructions have needs no note. No policy keeps messages of users from an agent; messages about anomalies are another matter.
func (d *decision) directed(turn conversation.Turn, list []byte, at int) due {
	if turn.Kind != conversation.KindMain || turn.Again {
		return due{}
	}
	s := d.s
	has := func(mark string) bool { return bytes.Contains(list, []byte(mark)) }
	s.Directed = s.Directed.Keep(func(x directives.Said) bool {
		if x.Instructed { // a summary may repeat the mark without the text
			return has(x.Sum) && (!turn.Compacted || turn.Aligned >= x.After)
		}
		return s.shows(turn.Thread, x.After)
	})
	if turn.Messages-turn.Tail > turn.Aligned { // the conversation has gone on behind what was said
		d.reached(turn.Aligned)
	}
	for _, said := range turn.Said {
		d.says(said.Text)
	}
	s.Stood = s.Stood && !turn.Compacted
	given := d.f.Directives.With(d.f.Directives.Learn(d.e.News))
	if !turn.Compacted {
		s.Directed = s.Directed.Read(given, s.Turns, at, has)
	}
	note := s.Directed.Note(given, s.Turns, at, !s.Stood)
	s.Stood = s.Stood || note.Text == ""
	return due{note.Text, func() { s.Directed, s.Stood = note.Told, s.Stood || !note.Left }}
}

// reached says that the model has answered a request of the main thread with the given number of entries.
func (d *decision) reached(entries int) {
	next, ids := d.s.Directed.Hear(entries)
	d.s.Directed = next
	if len(ids) > 0 {
		d.e.News.Told, d.e.News.How = ids, fmt.Sprintf("the watchdog told the model, which has answered; turn %d", d.s.Turns)
	}
}

// addressed hears an answer of the model.
func (d *decision) addressed(thread int, a *conversation.Answer) {
	if !d.s.main(thread) || !a.Ended && len(a.Text)+len(a.Tools) == 0 {
		return
	}
	d.reached(conversation.MaxMessages)
	d.says(string(a.Text))
}

// says takes what the model has said in the main thread: of directives, and of the rules that it broke.
func (d *decision) says(text string) {
	d.e.News.Words = append(d.e.News.Words, directives.Words(text)...)
	d.understood(notice.Heard(text))
}

// main says whether a thread is the conversation about the task.
func (s *State) main(thread int) bool {
	return slices.ContainsFunc(s.Book.Threads, func(t *conversation.Thread) bool { return t.ID == thread && t.Kind == conversation.KindMain })
}
