// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// given is a directive of a person.
func given(id string, change ...func(*protocol.Directive)) protocol.Directive {
	d := protocol.Directive{ID: id, Source: protocol.SourcePerson, Description: "Do " + id + "."}
	for _, c := range change {
		c(&d)
	}
	return d
}

func cleanup(d *protocol.Directive)  { d.Type = protocol.DirectiveCleanup }
func critical(d *protocol.Directive) { d.Priority = protocol.PriorityCritical }
func low(d *protocol.Directive)      { d.Priority = protocol.PriorityLow }
func inform(d *protocol.Directive)   { d.Inform = true }

// states of a book, one "id state age" each.
func states(b Book, list []protocol.Directive, finished int) (all []string) {
	for _, s := range b.Given(list, finished).Status() {
		all = append(all, fmt.Sprintf("%s %s %d", s.ID, s.State, s.Age))
	}
	return all
}

func ids(list []Directive) (all []string) {
	for _, d := range list {
		all = append(all, d.ID)
	}
	return all
}

// TestLifeOfADirective: told, then settled by the agent's word; what is taken back or given in other words is told from the journal's book alone.
func TestLifeOfADirective(t *testing.T) {
	a, b := given("a"), given("b")
	list := []protocol.Directive{a, b}
	var book Book
	check := func(what string, finished int, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, states(book, list, finished)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	book = book.With(book.Given(list, 1).Follow())
	check("given", 1, "a Pending 0", "b Pending 0")
	if again := book.Given(list, 3).Follow(); len(again) != 0 {
		t.Errorf("the same orders change %+v", again)
	}
	book = book.With(book.Given(list, 3).Learn(News{Words: []Word{{ID: "a", Outcome: Done}}}))
	check("an agent speaks of what it was not told", 3, "a Pending 2", "b Pending 2")
	book = book.With(book.Given(list, 3).Learn(News{Told: []string{"a", "b", "c"}, How: "told"}))
	check("told", 3, "a Active 2", "b Active 2")
	book = book.With(book.Given(list, 4).Learn(News{Words: []Word{{ID: "a", Outcome: Cannot, Reason: "no dictionary"}, {ID: "c", Outcome: Done}}}))
	check("it cannot be done", 4, "a Escalated 3", "b Active 3")
	if s := book.Given(list, 4).Status()[0].Message; s != `the agent says that it cannot be done: "no dictionary"` {
		t.Errorf("message %q", s)
	}
	if open := ids(book.Given(list, 0).Open()); !slices.Equal(open, []string{"b"}) {
		t.Errorf("open %q", open)
	}
	if again := book.Given(list, 4).Learn(News{Words: []Word{{ID: "a", Outcome: Cannot, Reason: "still none"}}}); len(again) != 0 {
		t.Errorf("an agent that says it again in other words writes a record each time: %+v", again)
	}
	book = book.With(book.Given(list, 5).Learn(News{Words: []Word{{ID: "a", Outcome: Done, Reason: "found it"}}}))
	check("it was done later", 5, "a Addressed 4", "b Active 4")
	list[0].Description = "Do a otherwise."
	book = book.With(book.Given(list, 6).Follow())
	check("given in other words", 6, "a Pending 0", "b Active 5")
	list = nil
	book = book.With(book.Given(list, 7).Follow())
	check("taken back", 7, "a Dropped 1", "b Addressed 6")
	list = []protocol.Directive{b}
	book = book.With(book.Given(list, 9).Follow())
	check("given again", 9, "a Dropped 1", "b Pending 0")
}

// TestInformation is over as soon as it is told: the agent has nothing to say to it.
func TestInformation(t *testing.T) {
	list := []protocol.Directive{given("answer/q1", inform)}
	var book Book
	book = book.With(book.Given(list, 0).Follow())
	book = book.With(book.Given(list, 0).Learn(News{Told: []string{"answer/q1"}, How: "told"}))
	if got := states(book, list, 0); !slices.Equal(got, []string{"answer/q1 Addressed 0"}) {
		t.Errorf("%q", got)
	}
}

// TestAge: Cleanup directives are dropped when many tasks were finished since, and no others.
func TestAge(t *testing.T) {
	list := []protocol.Directive{given("functional"), given("cleanup", cleanup), given("grave", cleanup, critical)}
	var book Book
	book = book.With(book.Given(list, 2).Follow())
	for finished, want := range map[int]string{16: "cleanup Pending 14", 17: "cleanup Dropped 15", 40: "cleanup Dropped 38"} {
		aged := book.With(book.Given(list, finished).Follow())
		if got := states(aged, list, finished); got[1] != want || !strings.Contains(got[0], "Pending") || !strings.Contains(got[2], "Pending") {
			t.Errorf("after %d tasks: %q, want %q", finished, got, want)
		}
	}
}

// TestOrder in which the agent is told: by priority, Functional before Cleanup, and then as they came.
func TestOrder(t *testing.T) {
	list := []protocol.Directive{
		given("6", low, cleanup), given("5", low), given("4", cleanup), given("2"), given("3"), given("1", critical, cleanup), given("0", critical),
	}
	var book Book
	book = book.With(book.Given(list, 0).Follow())
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6"}, ids(book.Given(list, 0).Open())); diff != "" {
		t.Error(diff)
	}
}

// TestCap: of Cleanup directives the agent is given ten at a time. The others wait and say so, and none is lost.
func TestCap(t *testing.T) {
	var list []protocol.Directive
	for i := range 12 {
		list = append(list, given(fmt.Sprintf("c%d", i), cleanup, low))
	}
	var book Book
	book = book.With(book.Given(list, 0).Follow())
	open := ids(book.Given(list, 0).Open())
	if len(open) != 10 {
		t.Fatalf("open: %q", open)
	}
	book = book.With(book.Given(list, 0).Learn(News{Told: open, How: "told"}))
	if s := book.Given(list, 0).Status()[11]; s.State != protocol.DirectivePending || !strings.Contains(s.Message, "waits") {
		t.Errorf("%+v", s)
	}
	// A later one of a higher rank takes nothing from those that the agent works on.
	list = append(list, given("urgent", cleanup))
	book = book.With(book.Given(list, 0).Follow())
	if now := ids(book.Given(list, 0).Open()); !slices.Equal(now, open) {
		t.Errorf("open: %q, before %q", now, open)
	}
	book = book.With(book.Given(list, 0).Learn(News{Words: []Word{{ID: "c0", Outcome: Done}}}))
	if now := ids(book.Given(list, 0).Open()); len(now) != maxCleanup || !slices.Contains(now, "urgent") {
		t.Errorf("after one is addressed: %q", now)
	}
}

// byReviewer makes a Cleanup directive that a reviewer has given.
func byReviewer(d *protocol.Directive) {
	d.Source, d.Type = protocol.SourceCodeStyle, protocol.DirectiveCleanup
}

// TestRConvSurplusOfReviewers: of more than ten open Cleanup directives, the least important ones that the agent has not received are dropped; never those of
// people, which also come first.
func TestRConvSurplusOfReviewers(t *testing.T) {
	var list []protocol.Directive
	for i := range maxCleanup {
		list = append(list, given(fmt.Sprintf("r%02d", i), byReviewer, low))
	}
	var book Book
	book = book.With(book.Given(list, 1).Follow())
	book = book.With(book.Given(list, 1).Learn(News{Told: []string{"r00"}, How: "told"}))
	list = append(list, given("late", byReviewer), given("mine", cleanup, low))
	book = book.With(book.Given(list, 2).Follow())
	got := map[string]string{}
	for _, s := range book.Given(list, 2).Status() {
		got[s.ID] = s.State
	}
	if got["r00"] != protocol.DirectiveActive || got["r01"] != protocol.DirectivePending || got["r09"] != protocol.DirectiveDropped || got["late"] != protocol.DirectivePending || got["mine"] != protocol.DirectivePending {
		t.Errorf("states: %v", got)
	}
	if open := ids(book.Given(list, 2).Open()); len(open) != maxCleanup+1 || !slices.Equal(open[:3], []string{"mine", "late", "r00"}) {
		t.Errorf("open: %q", open)
	}
	if again := book.Given(list, 2).Follow(); len(again) != 0 {
		t.Errorf("it changes again: %+v", again)
	}
}

// TestReviewersKeepNoUserWaiting: an agent that has received as many Cleanup directives of reviewers as it is given at a time still gets one of a user.
func TestReviewersKeepNoUserWaiting(t *testing.T) {
	var list []protocol.Directive
	for i := range maxCleanup {
		list = append(list, given(fmt.Sprintf("r%d", i), byReviewer))
	}
	var book Book
	book = book.With(book.Given(list, 1).Follow())
	book = book.With(book.Given(list, 1).Learn(News{Told: ids(book.Given(list, 1).Open()), How: "told"}))
	list = append(list, given("mine", cleanup, low))
	book = book.With(book.Given(list, 2).Follow())
	if open := ids(book.Given(list, 2).Open()); !slices.Contains(open, "mine") || len(open) != maxCleanup+1 {
		t.Errorf("open: %q", open)
	}
}

// TestADirectiveOfAReviewerMakesRoom: one that is not over and not given any more is dropped, and users read why. One that is over keeps its state.
func TestADirectiveOfAReviewerMakesRoom(t *testing.T) {
	list := []protocol.Directive{given("new", byReviewer), given("known", byReviewer), given("done", byReviewer), given("cannot", byReviewer)}
	book := Book{}.With(Book{}.Given(list, 1).Follow())
	book = book.With(book.Given(list, 1).Learn(News{Told: []string{"known", "done", "cannot"}, How: "told"}))
	for id, state := range map[string]string{"done": protocol.DirectiveAddressed, "cannot": protocol.DirectiveEscalated} {
		e := book.find(id)
		e.State, e.Message = state, "said"
		book = book.With([]Entry{e})
	}
	book = book.With(book.Given(nil, 2).Follow())
	var got []string
	for _, e := range book {
		got = append(got, fmt.Sprintf("%s %s given=%v unread=%v %s", e.ID, e.State, e.Given, e.Unread, e.Message))
	}
	want := []string{"new Dropped given=false unread=true " + crowded, "known Dropped given=false unread=false " + crowded,
		"done Addressed given=false unread=false said", "cannot Escalated given=false unread=false said"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWords: an agent's answer says what became of a directive in one form alone.
func TestWords(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []Word
	}{
		"as asked":        {"I did it.\nDIRECTIVE use-dict: ADDRESSED - by web/dict.ts\nMore.", []Word{{"use-dict", Done, "by web/dict.ts"}}},
		"all outcomes":    {"DIRECTIVE a: ADDRESSED\nDIRECTIVE b: ALREADY HANDLED: there\r\nDIRECTIVE c: CANNOT — no  network", []Word{{"a", Done, ""}, {"b", Already, "there"}, {"c", Cannot, "no network"}}},
		"in Markdown":     {"- **DIRECTIVE `a`: ADDRESSED** - well\n1. DIRECTIVE b: CANNOT\n> DIRECTIVE <c>: ADDRESSED.", []Word{{"a", Done, "well"}, {"b", Cannot, ""}, {"c", Done, ""}}},
		"delivered":       {"DIRECTIVE delivered/checkout: ALREADY HANDLED - rebased", []Word{{"delivered/checkout", Already, "rebased"}}},
		"in a sentence":   {"I shall say DIRECTIVE a: ADDRESSED when it is done.", nil},
		"another word":    {"DIRECTIVE a: ADDRESSEDLY", nil},
		"lower case":      {"DIRECTIVE a: addressed later", nil},
		"no id":           {"DIRECTIVE : ADDRESSED", nil},
		"two words":       {"DIRECTIVE a b: ADDRESSED", nil},
		"without outcome": {"DIRECTIVE a: not yet", nil},
		"the note itself": {asked, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Words(tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	long := Words("DIRECTIVE a: CANNOT " + strings.Repeat("why ", 10_000))
	if len(long) != 1 || len([]rune(long[0].Reason)) > 300 {
		t.Errorf("%d words", len(long))
	}
	if many := Words(strings.Repeat("DIRECTIVE a: ADDRESSED\n", 1000)); len(many) != maxWords {
		t.Errorf("%d words", len(many))
	}
}

// TestNote: what is new is said whole, the most urgent first; then the agent is left alone for some turns, reminded a few times, and told what
// was taken back.
func TestNote(t *testing.T) {
	list := []protocol.Directive{
		given("later", low), given("use-dict", critical, func(d *protocol.Directive) {
			d.Rationale, d.Files = "They are translated there.", []string{"web/dict.ts"}
		}),
		given("answer/q1", inform, func(d *protocol.Directive) { d.Description = `The answer to your question q1 ("Which?") is: Blue.` }),
	}
	var book Book
	var memory Told
	say := func(turn int64, entries int) string {
		note := memory.Note(book.Given(list, 0), turn, entries, false)
		memory = note.Told
		var heard []string
		memory, heard = memory.Hear(entries)
		book = book.With(book.Given(list, 0).Learn(News{Told: heard, How: "told"}))
		return note.Text
	}
	book = book.With(book.Given(list, 0).Follow())
	want := `[SUPERVISOR] Turn 3: word from the people who are in charge of this work.
Directive use-dict (Critical, before anything else): Do use-dict. Why: They are translated there. Files: web/dict.ts.
The answer to your question q1 ("Which?") is: Blue.
Directive later (Low, when everything else is done): Do later.
` + asked
	if diff := cmp.Diff(want, say(3, 5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	said := map[int64]string{}
	for turn := int64(4); turn < 80; turn++ {
		if text := say(turn, 5+int(turn)); text != "" {
			said[turn] = text
		}
	}
	var turns []int64
	for turn := range said {
		turns = append(turns, turn)
	}
	slices.Sort(turns)
	if diff := cmp.Diff([]int64{9, 15, 21, 27, 51, 75}, turns); diff != "" {
		t.Errorf("reminded (-want +got):\n%s", diff)
	}
	if got := said[9]; !strings.Contains(got, "Directive use-dict, which the supervisor gave you in turn 3, 6 turns ago, is still open: Do use-dict.") || strings.Contains(got, "q1") {
		t.Errorf("reminder: %s", got)
	}
	list = list[:1]
	book = book.With(book.Given(list, 0).Follow())
	if got := say(80, 100); !strings.Contains(got, "Directive use-dict, which the supervisor gave you in turn 3, was taken back") || strings.Contains(got, "exactly this form") {
		t.Errorf("taken back: %s", got)
	}
	if got := say(81, 101); got != "" {
		t.Errorf("said twice: %s", got)
	}
	list[0].Description = "Do it otherwise."
	book = book.With(book.Given(list, 0).Follow())
	if got := say(82, 102); !strings.Contains(got, "replaces what the supervisor told you under the same id in turn 3. Directive later (Low, when everything else is done): Do it otherwise.") {
		t.Errorf("in other words: %s", got)
	}
	// The client has compacted the conversation: what is open is said again.
	memory = memory.Keep(func(Said) bool { return false })
	if got := say(83, 4); !strings.Contains(got, "Directive later (Low") {
		t.Errorf("after the compaction: %s", got)
	}
}

// TestNoteIsBounded: what has no room is said with the next requests, and each once.
func TestNoteIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []protocol.Directive
		for i := range rapid.IntRange(1, 64).Draw(t, "directives") {
			size := rapid.SampledFrom([]int{1, 100, 2000}).Draw(t, "size")
			list = append(list, given(fmt.Sprintf("d%d", i), func(d *protocol.Directive) { d.Description = strings.Repeat("x", size) }))
		}
		var book Book
		var memory Told
		book = book.With(book.Given(list, 0).Follow())
		told := map[string]int{}
		for turn := 1; turn < 6; turn++ { // no reminders yet
			note := memory.Note(book.Given(list, 0), int64(turn), turn, false)
			text := note.Text
			memory = note.Told
			if len(text) > maxNote+3000 {
				t.Fatalf("%d bytes", len(text))
			}
			for _, d := range list {
				told[d.ID] += strings.Count(text, "Directive "+d.ID+" (")
			}
			var heard []string
			memory, heard = memory.Hear(turn)
			book = book.With(book.Given(list, 0).Learn(News{Told: heard, How: "told"}))
		}
		for id, n := range told {
			if n > 1 {
				t.Fatalf("%s was told %d times", id, n)
			}
		}
	})
}

// TestBookProperties: whatever comes in whatever order, nothing is addressed that was not told, nothing that is given is forgotten, states of
// what is over do not change by orders that stay the same, and the book is bounded.
func TestBookProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var book Book
		var list []protocol.Directive
		told, finished := map[string]bool{}, 0
		id := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("d%d", rapid.IntRange(0, 300).Draw(t, "id")) })
		t.Repeat(map[string]func(*rapid.T){
			"orders": func(t *rapid.T) {
				list = nil
				for _, name := range rapid.SliceOfNDistinct(id, 0, 64, rapid.ID).Draw(t, "ids") {
					list = append(list, given(name, func(d *protocol.Directive) {
						d.Type = rapid.SampledFrom([]string{"", protocol.DirectiveCleanup}).Draw(t, "type")
						d.Priority = rapid.SampledFrom([]string{"", protocol.PriorityCritical, protocol.PriorityLow}).Draw(t, "priority")
					}))
				}
				before := book
				book = book.With(book.Given(list, finished).Follow())
				for _, e := range book {
					if e.State == protocol.DirectivePending && before.find(e.ID).State != protocol.DirectivePending {
						told[e.ID] = false
					}
				}
				if again := book.Given(list, finished).Follow(); len(again) != 0 {
					t.Fatalf("the same orders change %+v", again)
				}
			},
			"task": func(*rapid.T) { finished++ },
			"words": func(t *rapid.T) {
				book = book.With(book.Given(list, finished).Learn(News{Words: []Word{{ID: id.Draw(t, "id"), Outcome: rapid.SampledFrom(Outcomes()).Draw(t, "outcome")}}}))
			},
			"told": func(t *rapid.T) {
				open := ids(book.Given(list, 0).Open())
				for _, o := range open {
					told[o] = true
				}
				book = book.With(book.Given(list, finished).Learn(News{Told: open, How: "told"}))
			},
			"": func(t *rapid.T) {
				if len(book) > maxEntries {
					t.Fatalf("%d entries", len(book))
				}
				for _, d := range list {
					if e := book.find(d.ID); !e.Given {
						t.Fatalf("%s is given, and forgotten", d.ID)
					}
				}
				for _, e := range book {
					if e.Given && (e.State == protocol.DirectiveAddressed || e.State == protocol.DirectiveEscalated) && !told[e.ID] {
						t.Fatalf("%s is %s, and was not told", e.ID, e.State)
					}
				}
				open := book.Given(list, 0).Open()
				if n := len(slices.DeleteFunc(open, func(d Directive) bool { return !d.ages() })); n > maxCleanup {
					t.Fatalf("%d Cleanup directives", n)
				}
			},
		})
	})
}

// TestNoPersonStandsForADelivery: what another Feature has delivered is not said in the name of people.
func TestNoPersonStandsForADelivery(t *testing.T) {
	list := []protocol.Directive{given("delivered/checkout", inform, func(d *protocol.Directive) { d.Source = protocol.SourceFeature })}
	note := func() string {
		var book Book
		return Told{}.Note(book.With(book.Given(list, 0).Follow()).Given(list, 0), 3, 5, false).Text
	}
	if diff := cmp.Diff("[SUPERVISOR] Turn 3: word of other work on this repository.\nDo delivered/checkout.", note()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	list = append(list, given("a"))
	if got := note(); !strings.HasPrefix(got, "[SUPERVISOR] Turn 3: word from the people who are in charge of this work.\n") {
		t.Error(got)
	}
}

// TestUsersComeFirst: instructions have room for some directives only, and Critical directives of reviewers do not take it from a user.
func TestUsersComeFirst(t *testing.T) {
	list := []protocol.Directive{given("design/1", critical, func(d *protocol.Directive) { d.Source = protocol.SourceDesign }), given("mine", low)}
	var book Book
	book = book.With(book.Given(list, 0).Follow())
	if lines := book.Given(list, 0).Instructions(); len(lines) != 3 || !strings.HasPrefix(lines[1], "- Directive mine ") {
		t.Errorf("instructions: %q", lines)
	}
}

// TestNoPersonStandsForAReviewer: what a reviewer wants is not said in the name of people.
func TestNoPersonStandsForAReviewer(t *testing.T) {
	list := []protocol.Directive{given("code-style/1", byReviewer)}
	for _, want := range []string{"word from the reviewers of this work", "word from the people who are in charge of this work and from its reviewers"} {
		var book Book
		got := Told{}.Note(book.With(book.Given(list, 0).Follow()).Given(list, 0), 3, 5, false).Text
		if !strings.HasPrefix(got, "[SUPERVISOR] Turn 3: "+want+".\n") {
			t.Error(got)
		}
		list = append(list, given("a"))
	}
}

// TestStatusHasTheTextsOfReviewers while these are given: users cannot read them anywhere else. They have those of other sources.
func TestStatusHasTheTextsOfReviewers(t *testing.T) {
	found := protocol.Directive{
		ID: "design/1", Source: protocol.SourceDesign, Type: protocol.DirectiveFunctional, Priority: protocol.PriorityCritical, Description: "Lock the store.", Rationale: "Two tasks write.", Files: []string{"store.go"},
	}
	list := []protocol.Directive{given("a"), found}
	var book Book
	book = book.With(book.Given(list, 0).Follow())
	s := book.Given(list, 0).Status()
	if s[0].Description != "" || len(s[0].Files) > 0 {
		t.Errorf("a directive of a person: %+v", s[0])
	}
	got := protocol.Directive{ID: s[1].ID, Source: s[1].Source, Type: s[1].Type, Priority: s[1].Priority, Description: s[1].Description, Rationale: s[1].Rationale, Files: s[1].Files}
	if diff := cmp.Diff(found, got); diff != "" {
		t.Errorf("a directive of a reviewer (-want +got):\n%s", diff)
	}
	if s := book.Given(list[:1], 0).Status(); s[1].Description != "" {
		t.Errorf("a directive that is not given any more: %+v", s[1])
	}
}
