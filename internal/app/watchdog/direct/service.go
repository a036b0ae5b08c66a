// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package direct carries messages of users to a working agent: it takes directives and answers from orders, journals the state of each, and
// reports it. Package core/session/directives decides when the agent gets which text. It gets them by its conversation, by tools or by its
// standard input.
package direct

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// Journal stores the states of directives.
type Journal interface {
	Note(journal.Record) error
	State() journal.State
}

// Service has the directives of one Feature. Make it with New. Its methods are safe for concurrent use.
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

// Follow takes new orders and the state of the tasks.
func (s *Service) Follow(o protocol.Orders) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = slices.Concat(o.Directives, answers(o, s.journal.State().Questions))
	s.note(s.now().Follow())
}

// answerID is the id of the answer to a question. No directive of a user has a slash in its id.
func answerID(question string) string { return "answer/" + question }

// answers to questions that the agent has asked.
func answers(o protocol.Orders, asked map[string]string) (list []protocol.Directive) {
	for _, a := range o.Answers {
		question, is := asked[a.Question]
		if !is {
			continue
		}
		list = append(list, protocol.Directive{
			ID: answerID(a.Question), Source: protocol.SourcePerson, Inform: true,
			Description: fmt.Sprintf("The answer to your question %s (%q) is: %s", a.Question, question, a.Text),
		})
	}
	return list
}

// now are the directives that are given, and how far each is.
func (s *Service) now() directives.List {
	j := s.journal.State()
	return j.Directives.Given(slices.Concat(s.given, j.Found), j.TasksDone()).Hold(j.Holds()).Polished(j.Polished())
}

// While note journals something that changes directives of reviewers, nothing else is journaled of directives: it would be about the states before.
func (s *Service) While(note func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return note()
}

// Given are the current directives with their states.
func (s *Service) Given() directives.List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// Open are the directives that the agent must receive, or must still address.
func (s *Service) Open() []directives.Directive { return s.Given().Open() }

// Unsettled are the directives that the agent must address now or in a polish task.
func (s *Service) Unsettled() []directives.Directive { return s.Given().Unsettled() }

// OpenOfReviewers are the ids of the reviewers' directives that are open, also if the agent gets them in a polish task.
func (s *Service) OpenOfReviewers() (ids []string) {
	for _, d := range s.Unsettled() {
		if review.Is(d.Source) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// CriticalOfReviewers are the Critical directives of reviewers that are open.
func (s *Service) CriticalOfReviewers() (list []protocol.Directive) {
	for _, d := range s.Open() {
		if review.Is(d.Source) && d.Priority == protocol.PriorityCritical {
			list = append(list, d.Directive)
		}
	}
	return list
}

// Status of all, as it is reported.
func (s *Service) Status() []protocol.DirectiveStatus { return s.Given().Status() }

// Learn what became known of some.
func (s *Service) Learn(n directives.News) {
	if len(n.Told)+len(n.Words) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(s.now().Learn(n))
}

// Instructed records that the watchdog has started the agent with instructions in which some stand, if shows says whether a mark is there.
func (s *Service) Instructed(shows func(mark string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.now()
	s.note(l.Learn(directives.News{Told: l.Instructed(shows), How: directives.Instructed}))
}

// Written records that the watchdog wrote some to the standard input of a process, and how far that informs the agent.
func (s *Service) Written(ids []string, process, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(s.now().Written(ids, process, how))
}

// note journals changes. What cannot be journaled has not happened: it is tried again at the next occasion.
func (s *Service) note(changes []directives.Entry) {
	if len(changes) == 0 {
		return
	}
	if err := s.journal.Note(journal.Record{Directed: &journal.Directed{Entries: changes}}); err != nil {
		s.log.Warn("Cannot journal how far directives are", "error", err.Error())
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
