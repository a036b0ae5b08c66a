// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
)

func called(names ...string) speech.Answer {
	a := speech.Answer{Stop: conversation.StopTools, Ended: true, Message: speech.Message{Model: true}}
	for _, name := range names {
		a.Message.Calls = append(a.Message.Calls, speech.Call{ID: name, Name: name, Arguments: json.RawMessage(`{}`)})
	}
	return a
}

func spoken(text string, stop conversation.Stop) speech.Answer {
	return speech.Answer{Stop: stop, Ended: true, Message: speech.Message{Model: true, Text: text}}
}

// TestLoop: what follows each answer; the last column is what is called, said, or why it fails.
func TestLoop(t *testing.T) {
	bounds := Bounds{Turns: 6, Reminders: 2, Window: 1000, MaxOutput: 100}
	for name, tc := range map[string]struct {
		answers []speech.Answer
		want    []string
	}{
		"calls":                       {[]speech.Answer{called("a", "b"), called("task_complete")}, []string{"calls a b", "calls task_complete"}},
		"one that only talks":         {[]speech.Answer{spoken("hm", conversation.StopEnd), spoken("hm", conversation.StopEnd), spoken("done", conversation.StopEnd)}, []string{"says You have called no tool", "says You have called no tool", `fails the model has called no tool in 3 answers in a row; its last one (ended by End) begins: "done"`}},
		"one that talks in between":   {[]speech.Answer{spoken("hm", conversation.StopEnd), called("a"), spoken("hm", ""), spoken("hm", ""), called("a")}, []string{"says You have", "calls a", "says You have", "says You have", "calls a"}},
		"one that is cut off":         {[]speech.Answer{spoken("long", conversation.StopLength)}, []string{"says Your answer was cut off"}},
		"more than is kept":           {[]speech.Answer{{Message: speech.Message{Model: true, Text: "long"}, Cut: true}}, []string{"says Your answer was cut off"}},
		"one that refuses":            {[]speech.Answer{spoken("", conversation.StopOther), spoken("", ""), spoken("", "")}, []string{"says", "says", `fails the model has called no tool in 3 answers in a row; its last one (no reason given) begins: ""`}},
		"one that comes to no end":    {[]speech.Answer{called("a"), called("a"), called("a"), called("a"), called("a"), called("a")}, []string{"calls a", "calls a", "calls a", "calls a", "calls a", "fails the model has answered 6 times and the task is not done: split the task, or raise the bound with spec.agent.args: [--max-turns=12]"}},
		"one that ends with its last": {[]speech.Answer{called("a"), called("a"), called("a"), called("a"), called("a"), called("b", "task_complete")}, []string{"calls a", "calls a", "calls a", "calls a", "calls a", "calls b task_complete"}},
		"one whose end is refused":    {[]speech.Answer{called("a"), called("a"), called("a"), called("a"), called("a"), called("b", "task_complete"), called("b", "task_complete")}, []string{"calls a", "calls a", "calls a", "calls a", "calls a", "calls b task_complete", "fails the model has answered 7 times and the task is not done: split the task, or raise the bound with spec.agent.args: [--max-turns=12]"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLoop(bounds, "Do it.")
			for i, a := range tc.answers {
				next := l.Hear(a, 100)
				got := "fails " + next.Fail
				switch {
				case next.Calls != nil:
					got = "calls"
					for _, c := range next.Calls {
						got += " " + c.Name
					}
				case next.Say != "":
					got = "says " + next.Say
				}
				if !strings.HasPrefix(got, tc.want[i]) {
					t.Errorf("answer %d: %s, want %s", i, got, tc.want[i])
				}
			}
		})
	}
}

// TestRoom: a request may have as many bytes as the window takes, by what the provider counts.
func TestRoom(t *testing.T) {
	l := NewLoop(Bounds{Turns: 10, Reminders: 10, Window: 1000, MaxOutput: 100}, "Do it.")
	for _, step := range []struct {
		sent          int
		input, cached int64
		want          int
	}{{0, 0, 0, 2700}, {4000, 500, 500, 3600}, {100, 0, 0, 3600}, {100, 5000, 0, 900}, {100_000, 10, 0, 5400}} {
		l.Hear(speech.Answer{Counted: true, Usage: conversation.Usage{Input: step.input, Cached: step.cached}}, step.sent)
		if got := l.Room(); got != step.want {
			t.Errorf("after %+v: %d", step, got)
		}
	}
	if got := NewLoop(Bounds{Window: 1000, MaxOutput: 990}, "").Room(); got != 1500 {
		t.Errorf("of a window that an answer could fill: %d", got)
	}
}

// TestDrop: old answers of tools make room, the oldest first. What was said stays, and what the model is at work on.
func TestDrop(t *testing.T) {
	large := strings.Repeat("x", 1000)
	var h History
	h.Add(speech.Message{Text: large})
	h.Add(speech.Message{Model: true})
	for i := range 5 {
		h.Add(called("a").Message)
		h.Add(speech.Message{Results: []speech.Result{{ID: "a", Text: large}, {ID: "b", Text: "short"}}, Text: strings.Repeat("y", i)})
	}
	each := len(large) - len(dropped)
	whole := func() (n int) {
		for _, m := range h.Messages() {
			for _, r := range m.Results {
				if r.Text == large {
					n++
				}
			}
		}
		return n
	}
	if len(h.Messages()) != 11 {
		t.Errorf("%d messages: one that says nothing is kept", len(h.Messages()))
	}
	if got := h.Drop(1); got != each || whole() != 4 || h.Messages()[2].Results[0].Text != dropped {
		t.Errorf("dropped %d, %d are whole", got, whole())
	}
	if got := h.Drop(100_000); got != 2*each || whole() != 2 || h.Messages()[0].Text != large {
		t.Errorf("dropped %d, %d are whole", got, whole())
	}
	if got := h.Drop(1); got != 0 {
		t.Errorf("dropped %d more", got)
	}
}

func TestResults(t *testing.T) {
	c := speech.Call{ID: "1"}
	if r := Answered(c, strings.Repeat("ä", maxResult), true, maxResult); len(r.Text) > maxResult+100 || !strings.HasSuffix(r.Text, "ä…\n(cut: the tool has answered 524288 bytes; ask for less at once)") || !r.Failed || r.ID != "1" {
		t.Errorf("%d bytes, ends with %q", len(r.Text), r.Text[len(r.Text)-60:])
	}
	if _, refused := Refuse(c); refused {
		t.Error("a good call is refused")
	}
	c.Broken = true
	if r, refused := Refuse(c); !refused || !r.Failed || r.ID != "1" || !strings.Contains(r.Text, "nothing was called") {
		t.Errorf("a broken call: %+v", r)
	}
}

// TestShare: the results of one answer take a quarter of the room at most, however many calls it has.
func TestShare(t *testing.T) {
	l := NewLoop(Bounds{Turns: 10, Window: 1_000_000, MaxOutput: 100_000}, "Do it.") // room for 2,700,000 bytes
	for calls, want := range map[int]int{0: maxResult, 1: maxResult, 2: maxResult, 3: 225_000, 10: 67_500, 1_000_000: 0} {
		if got := l.Share(calls); got != want {
			t.Errorf("%d calls: %d bytes each, want %d", calls, got, want)
		}
	}
}

// TestNamesOfCalls: a call that its server has not named gets a name that no other call of the conversation has.
func TestNamesOfCalls(t *testing.T) {
	l := NewLoop(Bounds{Turns: 10, Reminders: 1}, "Do it.")
	seen := map[string]bool{}
	for range 3 {
		a := called("a", "b", "c")
		a.Message.Calls[0].ID, a.Message.Calls[2].ID = "", ""
		for _, c := range l.Hear(a, 1).Calls {
			if c.ID == "" || seen[c.ID] && c.ID != "b" {
				t.Errorf("%q names more than one call", c.ID)
			}
			seen[c.ID] = true
		}
	}
}

// TestPlain: what was said in the words of a dialect is said in plain texts and calls, once.
func TestPlain(t *testing.T) {
	var h History
	h.Add(speech.Message{Text: "Do it."})
	h.Add(speech.Message{Model: true, Text: "Yes.", Said: json.RawMessage(`[]`)})
	h.Add(speech.Message{Model: true, Said: json.RawMessage(`[{"type":"reasoning"}]`)}) // a thought and nothing else
	if !h.Plain() || len(h.Messages()) != 2 || h.Messages()[1].Said != nil || h.Messages()[1].Text != "Yes." {
		t.Errorf("%+v", h.Messages())
	}
	if h.Plain() {
		t.Error("there is nothing to take back any more")
	}
}

// TestComplete: a task is not complete beside a call that did not succeed, of which the model does not know.
func TestComplete(t *testing.T) {
	done := speech.Call{ID: "done", Name: ToolComplete}
	for name, tc := range map[string]struct {
		before []speech.Result
		want   bool
	}{
		"alone":                 {nil, true},
		"after an applied one":  {[]speech.Result{{ID: "a", Text: `{"status":"applied"}`}, {ID: "b", Text: "a page of a file"}}, true},
		"after a refused patch": {[]speech.Result{{ID: "a", Text: `{"status":"refused","message":"…"}`}, {ID: "b", Text: "{}"}}, false},
		"after a failed call":   {[]speech.Result{{ID: "a", Text: "no such tool", Failed: true}}, false},
	} {
		result, complete := Complete(done, tc.before)
		if complete != tc.want || !complete && (!result.Failed || result.ID != "done") {
			t.Errorf("%s: %t, %+v", name, complete, result)
		}
	}
}
