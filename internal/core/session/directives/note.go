// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

const (
	// maxNote bounds a note in bytes, but for its first directive, which is said whole. What has no room is said with the next request.
	maxNote = 6000
	// maxWhy bounds a rationale, maxPaths and maxPath the files that are named, and maxAgain what is said of a directive again.
	maxWhy, maxPaths, maxPath, maxAgain = 600, 10, 200, 200
	// maxTold is how often a conversation gets one. A model that has not listened by then is a user's concern.
	maxTold = 4
)

// Said is what a conversation contains about a directive. It is stored as JSON.
type Said struct {
	ID  string `json:"id"`
	Sum string `json:"sum"`
	// After is the number of entries of the conversation before the note that has the whole text. Instructed: it stands in the agent's
	// instructions, which are among these entries.
	After      int  `json:"after"`
	Instructed bool `json:"instructed,omitempty"`
	// First and Last are the first and the last turn that contain it, and Times the number of them.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	Times int   `json:"times"`
	// Heard: the model has answered a request that had it.
	Heard bool `json:"heard,omitempty"`
	// Back: the conversation contains its withdrawal.
	Back bool `json:"back,omitempty"`
}

// Told is what a conversation contains about directives. A Told never changes: its methods return another one.
type Told []Said

// Keep what is still there. A directive whose note is gone counts as not received.
func (m Told) Keep(there func(Said) bool) Told {
	return slices.DeleteFunc(slices.Clone(m), func(s Said) bool { return !there(s) })
}

// Within moves what stood behind more entries than the given number to stand behind that number.
func (m Told) Within(entries int) Told {
	next := slices.Clone(m)
	for i := range next {
		next[i].After = min(next[i].After, entries)
	}
	return next
}

// Hear records that the model has answered a request with the given number of entries. It returns the ids of the directives that the model has seen.
func (m Told) Hear(entries int) (next Told, ids []string) {
	next = slices.Clone(m)
	for i := range next {
		if next[i].After <= entries {
			next[i].Heard = true
		}
		if next[i].Heard {
			ids = append(ids, next[i].ID)
		}
	}
	return next, ids
}

// every is how many turns pass before the agent gets it again.
func (d Directive) every() int64 {
	switch d.Priority {
	case protocol.PriorityCritical:
		return 6
	case protocol.PriorityLow:
		return 24
	}
	return 12
}

// Note is the text about directives in a turn.
type Note struct {
	// Text for the model; "" for nothing.
	Text string
	// Told is what the conversation contains after the Text.
	Told Told
	// Left says that some of what stands had no room in the Text.
	Left bool
}

// Note is what a turn says, behind the given number of entries. The last argument says that the conversation has begun, or was compacted, since it last
// contained what stands.
func (m Told) Note(l List, turn int64, entries int, anew bool) Note {
	n := noter{memory: slices.Clone(m), turn: turn, entries: entries}
	open := l.Open()
	for _, d := range open {
		n.tell(d)
	}
	for _, d := range open {
		n.remind(d)
	}
	for i := range n.memory {
		n.takeBack(&n.memory[i], l.book.find(n.memory[i].ID))
	}
	left := anew && n.stand(l.Standing())
	return Note{Text: n.text(), Told: n.memory, Left: left}
}

type noter struct {
	memory  Told
	turn    int64
	entries int

	lines []string
	size  int
	// asks says that the agent must answer, people that a user has given a part of it, and models that a reviewer has.
	asks, people, models bool
}

// say a line about something from a source, if it has room.
func (n *noter) say(source, line string) bool {
	if n.size > 0 && n.size+len(line) > maxNote {
		return false
	}
	n.lines, n.size = append(n.lines, line), n.size+len(line)
	n.people = n.people || personal(source) && source != protocol.SourceFeature
	n.models = n.models || !personal(source)
	return true
}

// tell of a directive that the conversation has not heard.
func (n *noter) tell(d Directive) {
	i := slices.IndexFunc(n.memory, func(s Said) bool { return s.ID == d.ID })
	if i >= 0 && n.memory[i].Sum == d.sum && !n.memory[i].Back {
		return
	}
	line := d.line("")
	if i >= 0 {
		line = fmt.Sprintf("This replaces what the supervisor told you under the same id in turn %d. %s", n.memory[i].First, line)
	}
	if !n.say(d.Source, line) {
		return
	}
	n.asks = n.asks || !d.Inform
	said := Said{ID: d.ID, Sum: d.sum, After: n.entries, First: n.turn, Last: n.turn, Times: 1}
	if i >= 0 {
		n.memory[i] = said
		return
	}
	n.memory = append(n.memory, said)
}

// remind of one that the agent got some turns ago.
func (n *noter) remind(d Directive) {
	i := slices.IndexFunc(n.memory, func(s Said) bool { return s.ID == d.ID })
	if i < 0 || d.Inform {
		return
	}
	if s := &n.memory[i]; s.Heard && s.Times < maxTold && n.turn-s.Last >= d.every() &&
		n.say(d.Source, fmt.Sprintf("Directive %s, which the supervisor gave you in turn %d, %d turns ago, is still open: %s", d.ID, s.First, n.turn-s.First, plain.CutRunes(strings.TrimSpace(d.Description), maxAgain))) {
		s.Last, s.Times, n.asks = n.turn, s.Times+1, true
	}
}

// stand says what an earlier conversation, or this one before it was compacted, contained and still holds. It says whether some had no room.
func (n *noter) stand(standing []Directive) (left bool) {
	for _, d := range standing {
		if slices.ContainsFunc(n.memory, func(s Said) bool { return s.ID == d.ID }) {
			continue
		}
		if !n.say(d.Source, d.line("")) {
			return true
		}
		n.memory = append(n.memory, Said{ID: d.ID, Sum: d.sum, After: n.entries, First: n.turn, Last: n.turn, Times: 1, Heard: true})
	}
	return false
}

// takeBack says that a directive needs no more work.
func (n *noter) takeBack(s *Said, e Entry) {
	if s.Back || e.Given || e.Message != takenBack || e.Sum != s.Sum {
		return
	}
	if n.say(e.Source, fmt.Sprintf("Directive %s, which the supervisor gave you in turn %d, was taken back: do no more work for it.", s.ID, s.First)) {
		s.Back = true
	}
}

// asked is how the agent reports the outcome of a directive. None has the id that stands here.
const asked = `Address each directive: do what it says, or explain that it is handled already, or why it cannot be done. Then say so in your answer, each on a line of its own, in exactly this form: "DIRECTIVE <id>: ADDRESSED - how", "DIRECTIVE <id>: ALREADY HANDLED - where" or "DIRECTIVE <id>: CANNOT - why".`

func (n *noter) text() string {
	if len(n.lines) == 0 {
		return ""
	}
	from := "word from the people who are in charge of this work"
	switch {
	case n.people && n.models:
		from += " and from its reviewers"
	case n.people:
	case n.models: // a model chose the words: no user vouches for them
		from = "word from the reviewers of this work"
	default: // another agent chose the names in it: no user vouches for them
		from = "word of other work on this repository"
	}
	lines := append([]string{fmt.Sprintf("%s Turn %d: %s.", steering.Tag, n.turn, from)}, n.lines...)
	if n.asks {
		lines = append(lines, asked)
	}
	return strings.Join(lines, "\n")
}

// when says when a directive is to be addressed.
func (d Directive) when() string {
	switch d.Priority {
	case protocol.PriorityCritical:
		return "Critical, before anything else"
	case protocol.PriorityLow:
		return "Low, when everything else is done"
	}
	return "Normal, when the current step is done"
}

// line is a directive as one line for an agent, with a mark behind its id, if there is one.
func (d Directive) line(mark string) string {
	var line strings.Builder
	if !d.Inform {
		fmt.Fprintf(&line, "Directive %s%s (%s): ", d.ID, mark, d.when())
	}
	line.WriteString(strings.TrimSpace(d.Description))
	if why := strings.Join(strings.Fields(d.Rationale), " "); why != "" {
		fmt.Fprintf(&line, " Why: %s", plain.CutRunes(why, maxWhy))
	}
	if files := d.ShownFiles(); len(files) > 0 {
		fmt.Fprintf(&line, " Files: %s", strings.Join(files, ", "))
		if more := len(d.Files) - len(files); more > 0 {
			fmt.Fprintf(&line, ", and %d more", more)
		}
		line.WriteString(".")
	}
	return line.String()
}

// ShownFiles are the files that it is about, cut to the number and the length that an agent gets.
func (d Directive) ShownFiles() (files []string) {
	for _, f := range d.Files[:min(len(d.Files), maxPaths)] {
		files = append(files, plain.CutRunes(f, maxPath))
	}
	return files
}
