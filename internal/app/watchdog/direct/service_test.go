// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// memory is a journal in memory, of an attempt that has begun.
type memory struct {
	state journal.State
	notes int
	err   error
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	s, err := journal.Replay([]journal.Record{{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}, {Asked: &protocol.Question{ID: "q1", Text: "Which colour?"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &memory{state: s}
}

func (m *memory) State() journal.State { return m.state }

func (m *memory) Note(r journal.Record) error {
	if m.err != nil {
		return m.err
	}
	m.notes++
	next, err := m.state.Apply(r)
	m.state = next
	return err
}

func (m *memory) service() *Service { return New(m, slog.New(slog.DiscardHandler)) }

func orders(ids ...string) (o protocol.Orders) {
	for _, id := range ids {
		o.Directives = append(o.Directives, protocol.Directive{ID: id, Source: protocol.SourcePerson, Description: "Do it."})
	}
	return o
}

// TestRestart: a service that begins anew neither forgets nor repeats what was journaled.
func TestRestart(t *testing.T) {
	m := newMemory(t)
	s := m.service()
	s.Follow(orders("a", "b"))
	s.Learn(directives.News{Told: []string{"a", "b"}, How: "told"})
	s.Learn(directives.News{Words: []directives.Word{{ID: "a", Outcome: directives.Done}}})
	notes := m.notes
	s = m.service()
	s.Follow(orders("a", "b"))
	if m.notes != notes {
		t.Errorf("%d records more", m.notes-notes)
	}
	if open := s.Open(); len(open) != 1 || open[0].ID != "b" {
		t.Errorf("open %+v", open)
	}
	select {
	case <-s.Changed():
		t.Error("there is something to report")
	default:
	}
}

// TestWaits: a question whose answer was taken back does not wait again.
func TestWaits(t *testing.T) {
	m := newMemory(t)
	s := m.service()
	s.Follow(orders())
	if !s.Waits("q1") {
		t.Error("it does not wait")
	}
	s.Follow(protocol.Orders{Answers: []protocol.Answer{{Question: "q1", Text: "Blue."}}})
	s.Answered("q1")
	for range 2 {
		if s.Waits("q1") {
			t.Error("it waits, and was answered")
		}
		s.Follow(orders())
	}
}

// TestSettledOnce: the agent's word by a tool and its word in the conversation count once, whichever comes first and whatever the other says.
func TestSettledOnce(t *testing.T) {
	tool := func(s *Service) {
		if err := s.Settle(directives.NewWord("a", directives.Done, "by the tool")); err != nil {
			t.Error(err)
		}
	}
	text := func(s *Service) {
		s.Learn(directives.News{Words: []directives.Word{{ID: "a", Outcome: directives.Cannot, Reason: "in words"}}})
	}
	for name, tc := range map[string]struct {
		say         []func(*Service)
		state, says string
	}{
		"the tool first":         {[]func(*Service){tool, text, tool}, protocol.DirectiveAddressed, "by the tool"},
		"the tool only":          {[]func(*Service){tool, tool}, protocol.DirectiveAddressed, "by the tool"},
		"the words only":         {[]func(*Service){text, text}, protocol.DirectiveEscalated, "in words"},
		"what it could do later": {[]func(*Service){text, tool, text}, protocol.DirectiveAddressed, "by the tool"},
	} {
		m := newMemory(t)
		s := m.service()
		s.Follow(orders("a"))
		if err := s.Settle(directives.NewWord("a", directives.Done, "too early")); err == nil {
			t.Errorf("%s: it settles what it was not told", name)
		}
		s.Learn(directives.News{Told: []string{"a"}, How: "told"})
		var states []string
		for _, say := range tc.say {
			before := m.notes
			say(s)
			if m.notes > before {
				states = append(states, s.Status()[0].State)
			}
		}
		if got := s.Status()[0]; got.State != tc.state || !strings.Contains(got.Message, tc.says) || len(slices.Compact(slices.Clone(states))) != len(states) {
			t.Errorf("%s: %+v, states %q", name, got, states)
		}
	}
}

// TestAJournalThatIsFull: what cannot be written down has not happened, and is tried again.
func TestAJournalThatIsFull(t *testing.T) {
	m := newMemory(t)
	s := m.service()
	s.Follow(orders("a"))
	m.err = errors.New("no space left")
	s.Learn(directives.News{Told: []string{"a"}, How: "told"})
	if got := s.Status(); got[0].State != protocol.DirectivePending {
		t.Errorf("%+v", got)
	}
	m.err = nil
	s.Learn(directives.News{Told: []string{"a"}, How: "told"})
	if got := s.Status(); got[0].State != protocol.DirectiveActive {
		t.Errorf("%+v", got)
	}
}

// TestAnswers: the agent is told the answers to what it has asked, and no others.
func TestAnswers(t *testing.T) {
	m := newMemory(t)
	s := m.service()
	s.Follow(protocol.Orders{Answers: []protocol.Answer{{Question: "q1", Text: "Blue."}, {Question: "q2", Text: "Who asked?"}}})
	open := s.Open()
	if len(open) != 1 || open[0].ID != answerID("q1") || !open[0].Inform || !strings.Contains(open[0].Description, "Blue.") || !strings.Contains(open[0].Description, "Which colour?") {
		t.Fatalf("open %+v", open)
	}
	s.Learn(directives.News{Told: []string{answerID("q1")}, How: "told"})
	if got := s.Status(); len(got) != 1 || got[0].State != protocol.DirectiveAddressed || len(s.Open()) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestWritten: each process is written to once, and what was told in another way is written to it all the same.
func TestWritten(t *testing.T) {
	m := newMemory(t)
	s := m.service()
	s.Follow(orders("a", "b"))
	s.Learn(directives.News{Told: []string{"b"}, How: "told"})
	s.Written([]string{"a", "b"}, "1/1", "written")
	if n := len(s.Given().Unwritten("1/1")); n != 0 {
		t.Errorf("%d are to be written again", n)
	}
	if n := len(s.Given().Unwritten("1/2")); n != 2 {
		t.Errorf("another process is told of %d", n)
	}
	for _, d := range s.Status() {
		if d.State != protocol.DirectiveActive {
			t.Errorf("%+v", d)
		}
	}
}
