// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package direct carries what people tell an agent while it works: it takes directives and answers from orders, journals how far each is, and
// says so in reports. What is told when, and in what words, core/directives decides; the conversation, the tools and the standard input of
// the agent are the ways on which it is told.
package direct

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// Journal remembers how far directives are.
type Journal interface {
	Note(journal.Record) error
	State() journal.State
}

// Service has the directives of one Feature. Make it with New. Its methods may be called from any goroutine.
type Service struct {
	journal Journal
	log     *slog.Logger
	changed chan struct{}

	mu    sync.Mutex
	given []protocol.Directive
}

// New service of an open journal.
func New(j Journal, log *slog.Logger) *Service {
	return &Service{journal: j, log: log, changed: make(chan struct{}, 1)}
}

// Follow orders, and what has become of the tasks since.
func (s *Service) Follow(o protocol.Orders) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal.State()
	s.given = slices.Concat(o.Directives, answers(o, j.Questions))
	s.note(j.Directives.Follow(s.given, j.TasksDone()))
}

// AnswerID is the id of the answer to a question. No directive of a person has a slash in its id.
func AnswerID(question string) string { return "answer/" + question }

// answers to questions that the agent has asked.
func answers(o protocol.Orders, asked map[string]string) (list []protocol.Directive) {
	for _, a := range o.Answers {
		question, is := asked[a.Question]
		if !is {
			continue
		}
		list = append(list, protocol.Directive{
			ID: AnswerID(a.Question), Source: protocol.SourcePerson, Inform: true,
			Description: fmt.Sprintf("The answer to your question %s (%q) is: %s", a.Question, question, a.Text),
		})
	}
	return list
}

// Given are the directives that are given now, and how far each is.
func (s *Service) Given() session.Directives {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal.State()
	return session.Directives{Book: j.Directives, Given: s.given, Finished: j.TasksDone()}
}

// Open are the directives that the agent is to be told, or has still to address.
func (s *Service) Open() []protocol.Directive {
	now := s.Given()
	return now.Book.Open(now.Given)
}

// Told says that the agent was told of some, and how.
func (s *Service) Told(ids []string, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal.State()
	s.note(j.Directives.Told(ids, s.given, j.TasksDone(), how))
}

// Written says that some were written to the standard input of a process.
func (s *Service) Written(ids []string, process, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal.State()
	s.note(j.Directives.Written(j.Directives.Told(ids, s.given, j.TasksDone(), how), ids, process))
}

// Heard is what the agent says of some.
func (s *Service) Heard(words []directives.Word) {
	if len(words) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal.State()
	s.note(j.Directives.Heard(words, j.TasksDone()))
}

// note journals changes. What cannot be journaled has not happened: it is tried again at the next occasion.
func (s *Service) note(changes []directives.Entry) {
	if len(changes) == 0 {
		return
	}
	if err := s.journal.Note(journal.Record{Directed: &journal.Directed{Entries: changes}}); err != nil {
		s.log.Warn("How far directives are cannot be journaled", "error", err.Error())
		return
	}
	for _, e := range changes {
		s.log.Info("Directive", "id", e.ID, "source", e.Source, "state", e.State, "message", e.Message)
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Changed says that there is something to report.
func (s *Service) Changed() <-chan struct{} { return s.changed }

// Status of all, as it is reported.
func (s *Service) Status() []protocol.DirectiveStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal.State()
	return j.Directives.Status(s.given, j.TasksDone())
}
