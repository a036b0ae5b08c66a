// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Instructed is how an agent received a directive that stands in the instructions with which the watchdog has started it.
const Instructed = "the agent has it in its instructions; nobody knows whether the agent has read them"

// Instructions are the lines about open directives for an agent that begins a task, in the sequence in which it must address them; none if none
// are open. Each has the mark by which Read finds it. Directives that only inform are not among them.
func (l List) Instructions() (lines []string) {
	for _, d := range l.Open() {
		if !d.Inform {
			lines = append(lines, "- "+quoted(d.line(" ["+d.sum+"]")))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return append([]string{asked}, lines...)
}

// Instructed are the ids of the directives that stand in the agent's instructions, if shows says whether a mark is there.
func (l List) Instructed(shows func(mark string) bool) (ids []string) {
	for _, d := range l.Open() {
		if !d.Inform && shows("["+d.sum+"]") {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// Reply is the text of the answer with the given id, for an agent that starts, with the mark by which Read finds it. It is empty if there is no such
// answer, or if an agent has heard it and again is false.
func (l List) Reply(id string, again bool) string {
	from := l.Open()
	if again {
		from = l.given
	}
	for _, d := range from {
		if d.ID == id && d.Inform {
			return quoted(d.line("")) + " [" + d.sum + "]"
		}
	}
	return ""
}

// quoted is a text whose second and later lines cannot be taken for anything else: they have a mark in front. Control characters become U+FFFD.
func quoted(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var b strings.Builder
	for {
		i := strings.IndexFunc(text, breaks)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		b.WriteString(text[:i])
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case strings.HasPrefix(text[i:], "\r\n"):
			size = len("\r\n")
			fallthrough
		case strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r):
			b.WriteString("\n  > ")
		default:
			b.WriteRune(utf8.RuneError)
		}
		text = text[i+size:]
	}
}

// breaks says whether a character ends a line or controls a terminal.
func breaks(r rune) bool {
	return r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029'
}

// Read adds the directives that stand in the agent's instructions, and the answer with which it starts, so that no note repeats them. The instructions are among the given number of
// entries of the conversation, and shows says whether a mark is there. The turn is the one of the request.
func (m Told) Read(l List, turn int64, entries int, shows func(mark string) bool) Told {
	next := slices.Clone(m)
	for _, d := range l.Open() {
		i := slices.IndexFunc(next, func(s Said) bool { return s.ID == d.ID })
		if i >= 0 && next[i].Sum == d.sum && !next[i].Back || !shows(d.sum) {
			continue
		}
		said := Said{ID: d.ID, Sum: d.sum, After: entries, Instructed: true, First: turn, Last: turn, Times: 1}
		if i >= 0 {
			next[i] = said
		} else {
			next = append(next, said)
		}
	}
	return next
}

// Reported are the current directives with the states that the watchdog has reported, given the number of finished tasks. A report does not have
// the texts: Reported treats it as one about the current ones.
func Reported(states []protocol.DirectiveStatus, orders []protocol.Directive, finished int) List {
	var book Book
	for _, s := range states {
		e := Entry{ID: s.ID, Source: s.Source, State: s.State, Born: finished - s.Age, Age: s.Age, Message: s.Message}
		if i := slices.IndexFunc(orders, func(d protocol.Directive) bool { return d.ID == s.ID }); i >= 0 {
			e.Given, e.Sum = true, sum(orders[i])
		}
		book = append(book, e)
	}
	l := book.Given(orders, finished)
	return l.With(l.Follow())
}
