// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package directives decides what becomes of the directives that an agent is given while it works: which ones it is told next and in what
// words, when it is told again, and when one is addressed. What agents say of them is believed, but only of those that they were told.
package directives

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxAge is how many finished tasks a Cleanup directive lives. One that is Critical does not age.
	maxAge = 15
	// maxCleanup is how many Cleanup directives the agent is given at a time. Others wait.
	maxCleanup = 10
	// maxEntries are remembered. Of those that are over and that nobody gives any more, the oldest are forgotten.
	maxEntries = protocol.MaxDirectives
	// takenBack by who gave it.
	takenBack = "it was taken back"
)

// Entry is what is remembered of a directive. It is written as JSON.
type Entry struct {
	ID string `json:"id"`
	// Sum of what it says: other words under the same id are another directive.
	Sum    string `json:"sum"`
	Source string `json:"source"`
	State  string `json:"state"`
	// Given: it is among those that are given now.
	Given bool `json:"given,omitempty"`
	// Born after so many finished tasks. Age in tasks when it was over.
	Born int `json:"born,omitempty"`
	Age  int `json:"age,omitempty"`
	// Input names the process whose standard input it was written to last.
	Input string `json:"input,omitempty"`
	// Message says more, for people.
	Message string `json:"message,omitempty"`
}

// open says whether the agent is to be told, or to address it.
func (e Entry) open() bool {
	return e.Given && (e.State == protocol.DirectivePending || e.State == protocol.DirectiveActive)
}

// Book has every directive that was given, in the order in which they came. A Book is never changed: With gives another one.
type Book []Entry

// With is the book after changes.
func (b Book) With(changes []Entry) Book {
	next := slices.Clone(b)
	for _, c := range changes {
		if i := next.at(c.ID); i >= 0 {
			next[i] = c
		} else {
			next = append(next, c)
		}
	}
	for len(next) > maxEntries {
		i := slices.IndexFunc(next, func(e Entry) bool { return !e.Given })
		if i < 0 {
			return next[:maxEntries]
		}
		next = slices.Delete(next, i, i+1)
	}
	return next
}

func (b Book) at(id string) int {
	return slices.IndexFunc(b, func(e Entry) bool { return e.ID == id })
}

// find an entry; the zero one where there is none.
func (b Book) find(id string) Entry {
	if i := b.at(id); i >= 0 {
		return b[i]
	}
	return Entry{}
}

// sum of what a directive says.
func sum(d protocol.Directive) string {
	text, err := json.Marshal(d)
	if err != nil {
		return "" // plain strings: it cannot happen
	}
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:8])
}

// Follow what is given now, when so many tasks are finished. It gives the entries that change.
func (b Book) Follow(given []protocol.Directive, finished int) (changes []Entry) {
	now := map[string]bool{}
	for _, d := range given {
		now[d.ID] = true
		e := b.find(d.ID)
		switch {
		case e.Sum != sum(d), !e.Given:
			changes = append(changes, Entry{ID: d.ID, Sum: sum(d), Source: d.Source, State: protocol.DirectivePending, Given: true, Born: finished})
		case e.open() && ages(d) && finished-e.Born >= maxAge:
			changes = append(changes, e.over(protocol.DirectiveDropped, finished,
				fmt.Sprintf("%d tasks were finished since it was given, and Cleanup directives are dropped then: give it another id, or make it Functional", finished-e.Born)))
		}
	}
	for _, e := range b {
		if !e.Given || now[e.ID] {
			continue
		}
		switch e.State {
		case protocol.DirectivePending:
			e = e.over(protocol.DirectiveDropped, finished, takenBack+" before the agent was told")
		case protocol.DirectiveActive, protocol.DirectiveEscalated:
			e = e.over(protocol.DirectiveAddressed, finished, takenBack)
		}
		e.Given = false
		changes = append(changes, e)
	}
	return changes
}

// ages says whether a directive is dropped when it is old.
func ages(d protocol.Directive) bool {
	return d.Type == protocol.DirectiveCleanup && d.Priority != protocol.PriorityCritical
}

// over is an entry whose directive is over.
func (e Entry) over(state string, finished int, message string) Entry {
	e.State, e.Age, e.Message = state, max(finished-e.Born, 0), message
	return e
}

// Open are the directives that the agent is to be told, or has still to address, in the order in which it is told. Of Cleanup directives
// there are as many as it is given at a time.
func (b Book) Open(given []protocol.Directive) []protocol.Directive {
	open := slices.DeleteFunc(slices.Clone(given), func(d protocol.Directive) bool {
		e := b.find(d.ID)
		return !e.open() || e.Sum != sum(d)
	})
	slices.SortStableFunc(open, func(x, y protocol.Directive) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(b.at(x.ID), b.at(y.ID)))
	})
	// Those that the agent has been told count first: what it works on is not taken from it by what came later.
	cleanup := 0
	for _, d := range open {
		if ages(d) && b.find(d.ID).State == protocol.DirectiveActive {
			cleanup++
		}
	}
	return slices.DeleteFunc(open, func(d protocol.Directive) bool {
		if !ages(d) || b.find(d.ID).State == protocol.DirectiveActive {
			return false
		}
		cleanup++
		return cleanup > maxCleanup
	})
}

// Standing are the directives that agents were told and need no more word of, but that are given as before: what a person has answered, and what was
// addressed or cannot be done, each in the words for an agent that has not heard of it, or has forgotten.
func (b Book) Standing(given []protocol.Directive) (standing []protocol.Directive) {
	for _, d := range given {
		e := b.find(d.ID)
		if !e.Given || e.Sum != sum(d) || e.State != protocol.DirectiveAddressed && e.State != protocol.DirectiveEscalated {
			continue
		}
		said := strings.TrimSpace(d.Description)
		switch {
		case d.Inform:
			said = "You may have been told before, and it holds: " + said
		case e.State == protocol.DirectiveEscalated:
			said = fmt.Sprintf("Directive %s was given before (%s). Keep to it as far as you can: %s", d.ID, e.Message, said)
		default:
			said = fmt.Sprintf("Directive %s was given before (%s), and holds for the rest of the work: %s", d.ID, e.Message, said)
		}
		d.Description, d.Rationale, d.Inform = said, "", true
		standing = append(standing, d)
	}
	return standing
}

// rank of a directive: Critical, Normal, Low, and Functional before Cleanup.
func rank(d protocol.Directive) int {
	r := 2
	switch d.Priority {
	case protocol.PriorityCritical:
		r = 0
	case protocol.PriorityLow:
		r = 4
	}
	if d.Type == protocol.DirectiveCleanup {
		r++
	}
	return r
}

// Told says that the agent was told of some, and how. It gives the entries that change. One that only informs is over then.
func (b Book) Told(ids []string, given []protocol.Directive, finished int, how string) (changes []Entry) {
	for _, d := range given {
		e := b.find(d.ID)
		if !slices.Contains(ids, d.ID) || e.Sum != sum(d) || !e.Given || e.State != protocol.DirectivePending {
			continue
		}
		if d.Inform {
			changes = append(changes, e.over(protocol.DirectiveAddressed, finished, how))
			continue
		}
		e.State, e.Message = protocol.DirectiveActive, how
		changes = append(changes, e)
	}
	return changes
}

// Written says that some were written to the standard input of a process.
func (b Book) Written(changes []Entry, ids []string, process string) []Entry {
	changed := b.With(changes)
	for _, id := range ids {
		if i := changed.at(id); i >= 0 {
			e := changed[i]
			e.Input = process
			changes = append(slices.DeleteFunc(changes, func(c Entry) bool { return c.ID == id }), e)
		}
	}
	return changes
}

// Unwritten are those of some directives that were not written to the standard input of a process.
func (b Book) Unwritten(open []protocol.Directive, process string) []protocol.Directive {
	return slices.DeleteFunc(slices.Clone(open), func(d protocol.Directive) bool { return b.find(d.ID).Input == process })
}

// Heard is what the agent says of some of them. It gives the entries that change: only of what it was told, and a directive that it could not
// do it may have done later. That it cannot be done is heard once: an agent that says it again, each time in other words, would fill the journal.
func (b Book) Heard(words []Word, finished int) (changes []Entry) {
	for _, w := range words {
		e := b.With(changes).find(w.ID)
		if !e.Given || e.State != protocol.DirectiveActive && e.State != protocol.DirectiveEscalated {
			continue
		}
		state := protocol.DirectiveAddressed
		if w.Outcome == Cannot {
			state = protocol.DirectiveEscalated
		}
		if state != e.State {
			changes = append(slices.DeleteFunc(changes, func(c Entry) bool { return c.ID == e.ID }), e.over(state, finished, w.message()))
		}
	}
	return changes
}

// Status of all, as it is reported.
func (b Book) Status(given []protocol.Directive, finished int) (list []protocol.DirectiveStatus) {
	open := b.Open(given)
	for _, e := range b {
		s := protocol.DirectiveStatus{ID: e.ID, Source: e.Source, State: e.State, Age: e.Age, Message: e.Message}
		if e.open() {
			s.Age = max(finished-e.Born, 0)
		}
		if e.State == protocol.DirectivePending && e.Given {
			s.Message = "the agent is told with its next call of a model"
			if !slices.ContainsFunc(open, func(d protocol.Directive) bool { return d.ID == e.ID }) {
				s.Message = fmt.Sprintf("it waits: the agent has %d open Cleanup directives, and more are not given at a time", maxCleanup)
			}
		}
		list = append(list, s)
	}
	return list
}
