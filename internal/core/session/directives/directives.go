// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package directives decides how a session handles directives for a working agent. It decides which ones the agent gets next and in what
// words, when it gets them again, and when one is addressed. It believes what agents say about directives, but only about ones that they
// have received.
package directives

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxAge is how many finished tasks a Cleanup directive lives. One that is Critical does not age.
	maxAge = 15
	// maxCleanup is how many Cleanup directives of users the agent is given at a time, and as many of reviewers. Others wait.
	maxCleanup = 10
	// maxEntries are remembered. Of the ones that are over and no longer current, the oldest are forgotten.
	maxEntries = protocol.MaxDirectives
	// takenBack by who gave it.
	takenBack = "it was taken back"
	// crowded is what users read of an open directive of a reviewer that made room for newer ones.
	crowded = "too many directives of reviewers are not over, and the oldest of them are dropped first"
	// later is what users read of a reviewer's directive that waits for the polish tasks.
	later = "it waits until all tasks are done: the agent gets it when it polishes the work"
	// missed is what users read of one whose polish task is over.
	missed = "the polish task for it is over, and the watchdog does not know that the agent received it"
)

// Entry is the state of a directive in the journal. It is stored as JSON.
type Entry struct {
	ID string `json:"id"`
	// Sum is the hash of its text: another text under the same id is another directive.
	Sum    string `json:"sum"`
	Source string `json:"source"`
	State  string `json:"state"`
	// Given: it is one of the current directives.
	Given bool `json:"given,omitempty"`
	// Born is the number of finished tasks when it arrived. Age is its age in tasks when it was over.
	Born int `json:"born,omitempty"`
	Age  int `json:"age,omitempty"`
	// Unread: it was dropped before the agent received it.
	Unread bool `json:"unread,omitempty"`
	// Again is how often its reviewer has found it in the work after an agent had answered. It never decreases.
	Again int `json:"again,omitempty"`
	// Input names the process whose standard input it was written to last.
	Input string `json:"input,omitempty"`
	// Message has details, for users.
	Message string `json:"message,omitempty"`
}

// open says whether the agent is to be told, or to address it.
func (e Entry) open() bool {
	return e.Given && (e.State == protocol.DirectivePending || e.State == protocol.DirectiveActive)
}

// Book has every directive since the Feature began, oldest first. A Book never changes: With returns another one.
type Book []Entry

// With is the book after changes.
func (b Book) With(changes []Entry) Book {
	next := slices.Clone(b)
	for _, c := range changes {
		if i := next.at(c.ID); i >= 0 {
			c.Again = max(c.Again, next[i].Again)
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

// Has says whether the book has a directive with an ID.
func (b Book) Has(id string) bool { return b.at(id) >= 0 }

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

// Given returns the entries of the directives that orders have now, given the number of finished tasks.
func (b Book) Given(orders []protocol.Directive, finished int) List {
	l := List{book: b, finished: finished}
	for _, d := range orders {
		l.given = append(l.given, Directive{Directive: d, sum: sum(d)})
	}
	return l.With(nil)
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

// Directive is a current directive: its text from the orders, and its state.
type Directive struct {
	protocol.Directive

	sum string
	// at is its place in the Book; -1 where it is not there.
	at int
	// entry of these words; the zero one where nothing is remembered of them.
	entry Entry
}

// open says whether the agent is to be told, or to address it.
func (d Directive) open() bool { return d.entry.open() }

// ages says whether a directive is dropped when it is old.
func (d Directive) ages() bool {
	return d.Type == protocol.DirectiveCleanup && d.Priority != protocol.PriorityCritical
}

// rank of a directive: Critical, Normal, Low, and Functional before Cleanup.
func (d Directive) rank() int {
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

// untold is 0 for a directive that the agent has received, and 1 for any other.
func (d Directive) untold() int {
	if d.entry.State == protocol.DirectiveActive {
		return 0
	}
	return 1
}

// reviewed is 1 for a directive of a reviewer, and 0 for any other: users come first.
func (d Directive) reviewed() int {
	if personal(d.Source) {
		return 0
	}
	return 1
}

// List has the current directives with their states. The zero List has none. A List never changes: With returns another one.
type List struct {
	given    []Directive
	book     Book
	finished int
	// hold: directives of reviewers that can wait are not told yet.
	hold bool
	// polished are the ids of the directives whose polish tasks are over.
	polished []string
}

// Hold is the List in which the agent gets Low and Cleanup directives of reviewers in polish tasks only, if hold is true. Otherwise it gets them as any others, as in
// the List that Given returns.
func (l List) Hold(hold bool) List {
	l.hold = hold
	return l
}

// Polished is the List after polish tasks for directives with the given ids. It changes only the Status: it does not say of these that they wait for such a task.
func (l List) Polished(ids []string) List {
	l.polished = ids
	return l
}

// With is the List after changes.
func (l List) With(changes []Entry) List {
	l.book, l.given = l.book.With(changes), slices.Clone(l.given)
	for i := range l.given {
		d := &l.given[i]
		d.at, d.entry = l.book.at(d.ID), Entry{}
		if d.at >= 0 && l.book[d.at].Sum == d.sum {
			d.entry = l.book[d.at]
		}
	}
	return l
}

// over is an entry whose directive is over.
func (l List) over(e Entry, state, message string) Entry {
	e.State, e.Age, e.Message = state, max(l.finished-e.Born, 0), message
	return e
}

// dropped is an open entry whose directive is dropped. One that is open again has been received before.
func (l List) dropped(e Entry, message string) Entry {
	e.Unread = e.State == protocol.DirectivePending && e.Again == 0
	return l.over(e, protocol.DirectiveDropped, message)
}

// Follow takes the current directives. It returns the entries that change.
func (l List) Follow() (changes []Entry) {
	now := map[string]bool{}
	for _, d := range l.given {
		now[d.ID] = true
		switch age := l.finished - d.entry.Born; {
		case !d.entry.Given:
			changes = append(changes, Entry{ID: d.ID, Sum: d.sum, Source: d.Source, State: protocol.DirectivePending, Given: true, Born: l.finished})
		case d.open() && d.ages() && age >= maxAge:
			changes = append(changes, l.dropped(d.entry, aged(d.Source, age)))
		}
	}
	changes = append(changes, l.surplus()...)
	for _, e := range l.book {
		if !e.Given || now[e.ID] {
			continue
		}
		switch {
		case !personal(e.Source) && e.open(): // nobody takes back what a reviewer has given: it made room for newer ones
			e = l.dropped(e, crowded)
		case !personal(e.Source): // it is over
		case e.State == protocol.DirectivePending:
			e = l.dropped(e, takenBack+" before the watchdog told the agent")
		case e.State == protocol.DirectiveActive, e.State == protocol.DirectiveEscalated:
			e = l.over(e, protocol.DirectiveAddressed, takenBack)
		}
		e.Given = false
		changes = append(changes, e)
	}
	return changes
}

// aged is what users read of a directive that is dropped at an age in tasks.
func aged(source string, age int) string {
	why := fmt.Sprintf("%d tasks were finished since it was given, and Cleanup directives are dropped then", age)
	if personal(source) {
		why += ": give it another id, or make it Functional"
	}
	return why
}

// surplus drops the least important Cleanup directives of reviewers, of which at most maxCleanup may be open. What the agent works on counts for more.
func (l List) surplus() (changes []Entry) {
	var cleanup []Directive
	for _, d := range l.given {
		if !personal(d.Source) && d.ages() && (d.open() || !d.entry.Given) {
			cleanup = append(cleanup, d)
		}
	}
	plain.SortStable(cleanup, func(x, y *Directive) int {
		return cmp.Or(cmp.Compare(x.untold(), y.untold()), cmp.Compare(x.rank(), y.rank()))
	})
	for _, d := range cleanup[min(len(cleanup), maxCleanup):] {
		e := d.entry
		if !e.Given {
			e = Entry{ID: d.ID, Sum: d.sum, Source: d.Source, State: protocol.DirectivePending, Given: true, Born: l.finished}
		}
		changes = append(changes, l.dropped(e,
			fmt.Sprintf("%d Cleanup directives of reviewers are open, and no more are kept: this one is the least important", maxCleanup)))
	}
	return changes
}

// personal says whether the source of a directive is a user or another Feature, and no reviewer.
func personal(source string) bool {
	return source == "" || source == protocol.SourcePerson || source == protocol.SourceFeature
}

// held says whether the agent gets an open directive only in a polish task: it is a Low or Cleanup directive of a reviewer, which the agent has not received. No task builds on
// what it is about, and the agent finishes its tasks first.
func (l List) held(d Directive) bool {
	return l.hold && !personal(d.Source) && d.entry.State == protocol.DirectivePending && (d.Priority == protocol.PriorityLow || d.ages())
}

// Open are the directives that the agent must receive, or must still address, in the sequence in which it gets them.
func (l List) Open() []Directive { return slices.DeleteFunc(l.Unsettled(), l.held) }

// Unsettled are the directives that the agent must address now or in a polish task, in the same sequence. It contains at most as many Cleanup directives as the agent gets at a
// time. The directives of reviewers do not keep the ones of users waiting.
func (l List) Unsettled() []Directive {
	open := slices.DeleteFunc(slices.Clone(l.given), func(d Directive) bool { return !d.open() })
	plain.SortStable(open, func(x, y *Directive) int {
		return cmp.Or(cmp.Compare(x.reviewed(), y.reviewed()), cmp.Compare(x.rank(), y.rank()), cmp.Compare(x.at, y.at))
	})
	// Those that the agent has been told count first: what it works on is not taken from it by what came later.
	var cleanup [2]int
	for _, d := range open {
		if d.ages() && d.entry.State == protocol.DirectiveActive {
			cleanup[d.reviewed()]++
		}
	}
	return slices.DeleteFunc(open, func(d Directive) bool {
		if !d.ages() || d.entry.State == protocol.DirectiveActive {
			return false
		}
		cleanup[d.reviewed()]++
		return cleanup[d.reviewed()] > maxCleanup
	})
}

// Standing are the directives that agents received and need not answer, but that are still current: answers of users, and directives that
// were addressed or cannot be done. Each has the words for an agent that has not received it, or has forgotten it.
func (l List) Standing() (standing []Directive) {
	for _, d := range l.given {
		if !d.entry.Given || d.entry.State != protocol.DirectiveAddressed && d.entry.State != protocol.DirectiveEscalated {
			continue
		}
		said := strings.TrimSpace(d.Description)
		switch {
		case d.Inform:
			said = "You may have been told before, and it holds: " + said
		case d.entry.State == protocol.DirectiveEscalated:
			said = fmt.Sprintf("Directive %s was given before (%s). Keep to it as far as you can: %s", d.ID, d.entry.Message, said)
		default:
			said = fmt.Sprintf("Directive %s was given before (%s), and holds for the rest of the work: %s", d.ID, d.entry.Message, said)
		}
		d.Description, d.Rationale, d.Inform = said, "", true
		standing = append(standing, d)
	}
	return standing
}

// Unwritten are the open or standing directives that the watchdog has not written to the standard input of a process.
func (l List) Unwritten(process string) []Directive {
	return slices.DeleteFunc(slices.Concat(l.Open(), l.Standing()), func(d Directive) bool { return d.entry.Input == process })
}

// Written records that the watchdog wrote some to the standard input of a process, and how far that informs the agent. It returns the
// entries that change.
func (l List) Written(ids []string, process, how string) (changes Book) {
	changes = l.told(ids, how)
	book := l.book.With(changes)
	for _, id := range ids {
		if i := book.at(id); i >= 0 {
			e := book[i]
			e.Input = process
			changes = changes.With([]Entry{e})
		}
	}
	return changes
}

// News is what became known of directives.
type News struct {
	// Told are the ids of directives that the agent received, as How says.
	Told []string
	How  string
	// Words are the agent's statements about directives.
	Words []Word
}

// Learn returns the entries that change because of news. It accepts an agent's statement only about directives that the agent received; the
// agent may later address a directive that it could not do before. Learn records only the first statement that a directive cannot be done:
// an agent that repeats it, each time in other words, would fill the journal.
func (l List) Learn(n News) (changes Book) {
	changes = l.told(n.Told, n.How)
	for _, w := range n.Words {
		e := cmp.Or(changes.find(w.ID), l.book.find(w.ID))
		if !e.Given || !e.believed() || e.State != protocol.DirectiveActive && e.State != protocol.DirectiveEscalated {
			continue
		}
		state := protocol.DirectiveAddressed
		if w.Outcome == Cannot {
			state = protocol.DirectiveEscalated
		}
		if state != e.State {
			changes = changes.With([]Entry{l.over(e, state, w.message())})
		}
	}
	return changes
}

// told returns the entries that change because the agent received some. One that only informs is over then. What shows that a model has read its instructions says
// more than that it has them.
func (l List) told(ids []string, how string) (changes []Entry) {
	for _, d := range l.given {
		e := d.entry
		read := e.State == protocol.DirectiveActive && e.Message == Instructed && how != Instructed
		if !slices.Contains(ids, d.ID) || !e.Given || e.State != protocol.DirectivePending && !read {
			continue
		}
		if d.Inform {
			changes = append(changes, l.over(e, protocol.DirectiveAddressed, how))
			continue
		}
		e.State, e.Message = protocol.DirectiveActive, how
		changes = append(changes, e)
	}
	return changes
}

// Status of all, as it is reported.
func (l List) Status() (list []protocol.DirectiveStatus) {
	unsettled := l.Unsettled()
	for i, e := range l.book {
		s := protocol.DirectiveStatus{ID: e.ID, Source: e.Source, State: e.State, Unread: e.Unread, Age: e.Age, Message: e.Message}
		if e.open() {
			s.Age = max(l.finished-e.Born, 0)
		}
		if e.State == protocol.DirectivePending && e.Given {
			s.Message = "the watchdog tells the agent with its next model call"
			at := slices.IndexFunc(unsettled, func(d Directive) bool { return d.ID == e.ID })
			switch {
			case at < 0:
				s.Message = fmt.Sprintf("it waits: the agent has %d open Cleanup directives, and more are not given at a time", maxCleanup)
			case l.held(unsettled[at]) && slices.Contains(l.polished, e.ID):
				s.Message = missed
			case l.held(unsettled[at]):
				s.Message = later
			}
		}
		if e.Again > 0 && e.open() {
			s.Message = found + s.Message
		}
		if d := l.current(i); d != nil && !personal(e.Source) {
			s.Type, s.Priority, s.Description, s.Rationale, s.Files = d.Type, d.Priority, d.Description, d.Rationale, d.Files
		}
		list = append(list, s)
	}
	return list
}

// current is the directive of an entry of the book; nil for one that is not given any more.
func (l List) current(at int) *Directive {
	for i := range l.given {
		if l.given[i].at == at {
			return &l.given[i]
		}
	}
	return nil
}
