// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestAgain: an answered directive that its reviewer still finds is open once more, with words that a conversation has not heard. The second time, a user
// decides, and the agent's word does not count any more.
func TestAgain(t *testing.T) {
	d := given("r", byReviewer)
	var book Book
	step := func(outcome Outcome) {
		t.Helper()
		l := book.Given([]protocol.Directive{d}, 1)
		if book = book.With(l.Follow()); len(book.Given([]protocol.Directive{d}, 1).Open()) == 0 && outcome != Done {
			t.Fatal("it is not open")
		}
		book = book.With(book.Given([]protocol.Directive{d}, 1).Learn(News{Told: []string{"r"}, How: "told"}))
		book = book.With(book.Given([]protocol.Directive{d}, 1).Learn(News{Words: []Word{{ID: "r", Outcome: outcome, Reason: "so"}}}))
	}
	again := func(finished int) (is bool) {
		var e Entry
		if d, e, is = book.Again(d, finished); is {
			book = book.With([]Entry{e})
		}
		return is
	}
	if again(1) {
		t.Fatal("it is open again before there is an answer")
	}
	step(Cannot)
	if !book.Find("r").Checked() || !again(7) {
		t.Fatalf("after an answer: %+v", book)
	}
	s := book.Given([]protocol.Directive{d}, 8).Status()[0]
	if s.State != protocol.DirectivePending || s.Age != 1 || s.Description != "Still there after your answer: Do r." || s.Message != "its reviewer still finds it in the work; the watchdog tells the agent with its next model call" {
		t.Errorf("open again: %+v", s)
	}
	told := Told{{ID: "r", Sum: sum(given("r", byReviewer)), First: 2, Heard: true}}
	if text := told.Note(book.Given([]protocol.Directive{d}, 8), 9, 5, false).Text; !strings.Contains(text, "Still there after your answer: Do r.") {
		t.Errorf("the same conversation hears %q", text)
	}
	step(Already)
	if !book.Find("r").Checked() || !again(9) {
		t.Fatalf("after another answer: %+v", book)
	}
	s = book.Given([]protocol.Directive{d}, 9).Status()[0]
	if s.State != protocol.DirectiveEscalated || s.Message != `its reviewer still finds it in the work after two answers of the agent, and the watchdog does not give it again: a user decides; the agent says that it was handled already: "so"` {
		t.Errorf("a user decides: %+v", s)
	}
	step(Done)
	if e := book.Find("r"); e.State != protocol.DirectiveEscalated || e.Checked() || again(11) {
		t.Errorf("the agent's word still counts: %+v", e)
	}
	person := given("mine")
	mine := Book{}.With(Book{}.Given([]protocol.Directive{person}, 1).Follow())
	mine = mine.With(mine.Given([]protocol.Directive{person}, 1).Learn(News{Told: []string{"mine"}, How: "told", Words: nil}))
	mine = mine.With(mine.Given([]protocol.Directive{person}, 1).Learn(News{Words: []Word{{ID: "mine", Outcome: Done}}}))
	if _, _, is := mine.Again(person, 2); is || mine.Find("mine").Checked() {
		t.Error("a reviewer opens the directive of a user again")
	}
}

// TestAgainIsBounded: whatever agents and reviewers say, and whatever is written late about the state before, a directive is opened again at most once.
func TestAgainIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b"}
		list := []protocol.Directive{given("a", byReviewer), given("b", byReviewer, low)}
		var book, late Book
		opened, finished := map[string]int{}, 0
		id := rapid.SampledFrom(names)
		t.Repeat(map[string]func(*rapid.T){
			"follow": func(*rapid.T) { book = book.With(book.Given(list, finished).Follow()) },
			"task":   func(*rapid.T) { finished++ },
			"told": func(t *rapid.T) {
				book = book.With(book.Given(list, finished).Learn(News{Told: []string{id.Draw(t, "id")}, How: "told"}))
			},
			"words": func(t *rapid.T) {
				book = book.With(book.Given(list, finished).Learn(News{Words: []Word{{ID: id.Draw(t, "id"), Outcome: rapid.SampledFrom(Outcomes()).Draw(t, "outcome")}}}))
			},
			"keep": func(t *rapid.T) { late = Book{book.Find(id.Draw(t, "id"))} },
			"write": func(*rapid.T) {
				book = book.With(slices.DeleteFunc(slices.Clone(late), func(e Entry) bool { return e.ID == "" }))
			},
			"look": func(t *rapid.T) {
				i := slices.Index(names, id.Draw(t, "id"))
				d, e, is := book.Again(list[i], finished)
				if !is {
					return
				}
				if list[i], book = d, book.With([]Entry{e}); e.State == protocol.DirectivePending {
					opened[d.ID]++
				}
				if strings.Count(d.Description, stillThere) != 1 {
					t.Fatalf("description %q", d.Description)
				}
			},
			"": func(t *rapid.T) {
				for name, n := range opened {
					if n > MaxAgain || book.Find(name).Again > MaxAgain+1 || book.Find(name).Again < n {
						t.Fatalf("%s is opened %d times again: %+v", name, n, book)
					}
				}
			},
		})
	})
}
