// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestInstructions are the open directives in the sequence of their priority, each with its mark; what only informs, and what is over, is not there.
func TestInstructions(t *testing.T) {
	list := []protocol.Directive{given("later", low), given("a"), given("over"), given("answer/q1", inform), given("now", critical)}
	var book Book
	book = book.With(book.Given(list, 0).Follow())
	book = book.With(book.Given(list, 0).Learn(News{Told: []string{"a", "over"}, How: "told"}))
	book = book.With(book.Given(list, 0).Learn(News{Words: []Word{{ID: "over", Outcome: Done}}}))
	want := []string{
		asked,
		"- Directive now [" + sum(list[4]) + "] (Critical, before anything else): Do now.",
		"- Directive a [" + sum(list[1]) + "] (Normal, when the current step is done): Do a.",
		"- Directive later [" + sum(list[0]) + "] (Low, when everything else is done): Do later.",
	}
	if diff := cmp.Diff(want, book.Given(list, 0).Instructions()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l := book.Given(list, 0)
	text := strings.Join(l.Instructions(), "\n")
	if diff := cmp.Diff([]string{"now", "a"}, l.Instructed(func(mark string) bool { return strings.Contains(text, mark) && mark != "["+sum(list[0])+"]" })); diff != "" {
		t.Errorf("in the instructions (-want +got):\n%s", diff)
	}
	if lines := (List{}).Instructions(); lines != nil {
		t.Errorf("without directives: %q", lines)
	}
}

// TestInstructionsAreQuoted: no text of a directive can be taken for a section or for another directive.
func TestInstructionsAreQuoted(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\n", "\r", "\u2028", "\v", "## INSTRUCTIONS", "- Directive x", "\x1b[2J", "\xff", "\t"}))
		text := strings.Join(rapid.SliceOf(part).Draw(r, "text"), "")
		list := []protocol.Directive{given("a", func(d *protocol.Directive) { d.Description, d.Rationale, d.Files = text, text, []string{text} })}
		var book Book
		lines := book.With(book.Given(list, 0).Follow()).Given(list, 0).Instructions()
		if len(lines) != 2 {
			r.Fatalf("%q", lines)
		}
		for i, line := range strings.Split(lines[1], "\n") {
			if i > 0 && !strings.HasPrefix(line, "  > ") || strings.ContainsFunc(line, unicode.IsControl) || strings.ContainsAny(line, "\u2028\u2029") {
				r.Errorf("line %d of %q", i, lines[1])
			}
		}
	})
}

// TestReported: what a report says leads to the instructions that the watchdog's own book leads to.
func TestReported(t *testing.T) {
	style := func(d *protocol.Directive) {
		d.Source, d.Type, d.Files = protocol.SourceCodeStyle, protocol.DirectiveCleanup, []string{"a.go"}
	}
	rapid.Check(t, func(r *rapid.T) {
		var list []protocol.Directive
		for i := range rapid.IntRange(1, 20).Draw(r, "directives") {
			change := rapid.SampledFrom([]func(*protocol.Directive){cleanup, critical, low, inform, style, func(*protocol.Directive) {}}).Draw(r, "kind")
			list = append(list, given(string(rune('a'+i)), change))
		}
		var book Book
		finished := 0
		for range rapid.IntRange(1, 6).Draw(r, "steps") {
			finished += rapid.IntRange(0, 9).Draw(r, "finished")
			shown := list[:rapid.IntRange(0, len(list)).Draw(r, "given")]
			book = book.With(book.Given(shown, finished).Follow())
			id := rapid.SampledFrom(list).Draw(r, "which").ID
			book = book.With(book.Given(shown, finished).Learn(News{Told: []string{id}, How: "told"}))
			book = book.With(book.Given(shown, finished).Learn(News{Words: []Word{{ID: rapid.SampledFrom(list).Draw(r, "word").ID, Outcome: rapid.SampledFrom(Outcomes()).Draw(r, "outcome")}}}))
		}
		book = book.With(book.Given(list, finished).Follow())
		want, got := book.Given(list, finished), Reported(book.Given(list, finished).Status(), list, finished)
		if diff := cmp.Diff(want.Instructions(), got.Instructions()); diff != "" {
			r.Errorf("(-watchdog +reported):\n%s", diff)
		}
	})
}

// TestRead finds what stands in the instructions, and nothing that the agent was told in another way or in other words.
func TestRead(t *testing.T) {
	list := []protocol.Directive{given("a"), given("b"), given("c"), given("answer/q1", inform)}
	var book Book
	book = book.With(book.Given(list, 0).Follow())
	l := book.Given(list, 0)
	shows := func(mark string) bool { return mark != sum(list[1]) }
	told := Told{{ID: "c", Sum: sum(list[2]), After: 1, First: 1, Last: 1, Times: 2}}.Read(l, 5, 3, shows)
	want := Told{{ID: "c", Sum: sum(list[2]), After: 1, First: 1, Last: 1, Times: 2}, {ID: "a", Sum: sum(list[0]), After: 3, Instructed: true, First: 5, Last: 5, Times: 1},
		{ID: "answer/q1", Sum: sum(list[3]), After: 3, Instructed: true, First: 5, Last: 5, Times: 1}}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	note := told.Note(l, 5, 3, false)
	if strings.Contains(note.Text, "Do a.") || strings.Contains(note.Text, "Do c.") || !strings.Contains(note.Text, "Do b.") {
		t.Errorf("note %q", note.Text)
	}
	if _, ids := told.Hear(2); slices.Contains(ids, "a") {
		t.Error("heard before the model has answered")
	}
	if _, ids := told.Hear(3); !slices.Contains(ids, "a") {
		t.Error("not heard")
	}
}
