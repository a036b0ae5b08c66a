// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

// Directives are what people tell the agent while it works. No policy keeps it from being told: what it is told because something is wrong
// is another matter.
type Directives interface {
	// Given are those that are given now, and how far each is.
	Given() (directives.Book, []protocol.Directive)
	// Told says that the agent was told of some, and how.
	Told(ids []string, how string)
	// Heard is what the agent says of some.
	Heard(words []directives.Word)
}

// mandate is what the main thread is told of directives in a turn, and what it was told of them then.
type mandate struct {
	text   string
	memory directives.Memory
	// left says that some of what stands had no room in it.
	left bool
}

// directed hears what the model has said, and decides what the model is told of directives with this request, behind so many entries.
func directed(s *Service, turn conversation.Turn, at int) mandate {
	if turn.Kind != conversation.KindMain || turn.Again {
		return mandate{}
	}
	r, d := &s.record, s.options.Directives
	r.Directed = r.Directed.Keep(func(after int) bool { return r.shows(turn.Thread, after) })
	if d != nil && turn.Messages-turn.Tail > turn.Aligned { // the conversation has gone on behind what was said
		reached(s, turn.Aligned)
	}
	for _, said := range turn.Said {
		says(s, said.Text)
	}
	if d == nil {
		return mandate{}
	}
	book, given := d.Given()
	r.Stood = r.Stood && !turn.Compacted
	text, memory, left := r.Directed.Note(book, given, int64(turn.Number), at, !r.Stood)
	r.Stood = r.Stood || text == ""
	return mandate{text, memory, left}
}

// reached says that the model has answered a request of the main thread with so many entries.
func reached(s *Service, entries int) {
	next, ids := s.record.Directed.Hear(entries)
	s.record.Directed = next
	if len(ids) > 0 {
		s.options.Directives.Told(ids, fmt.Sprintf("the model was told, and has answered; turn %d", s.record.Turns))
	}
}

// addressed hears an answer of the model.
func addressed(s *Service, thread int, a *conversation.Answer) {
	if !s.record.main(thread) || !a.Ended && len(a.Text)+len(a.Tools) == 0 {
		return
	}
	if s.options.Directives != nil {
		reached(s, conversation.MaxMessages)
	}
	says(s, string(a.Text))
}

// between two things that are said in one place.
const between = "\n\n"

// both joins what is said in one place.
func both(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), between)
}

// main says whether a thread is the conversation about the task.
func (r *record) main(thread int) bool {
	return slices.ContainsFunc(r.Book.Threads, func(t *conversation.Thread) bool { return t.ID == thread && t.Kind == conversation.KindMain })
}

// Talks says whether the agent has called a model since it was started.
func (s *Service) Talks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.asks()
}

// Anew forgets the conversation: the agent is about to be started without one. What was tried with the whole run is remembered.
func (s *Service) Anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outbox.ended(&s.record)
	s.record = s.record.next(s.record.Task, steering.State{Spent: s.record.Steering.Spent})
	s.gate.born++
	s.gate.open()
	s.write(nil, true)
}
