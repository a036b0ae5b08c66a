// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TestWhatASideCallHasHadFirst: what only a call without tools has had was not heard by the main thread.
func TestWhatASideCallHasHadFirst(t *testing.T) {
	var book conversation.Book
	book.Observe(request{lines: "user go\nuser bear in mind\n", tools: true})
	book.Observe(request{lines: "user go\ncall a\nresult a b\nuser bear in mind\n"})
	turn := book.Observe(request{lines: "user go\ncall a\nresult a b\nuser bear in mind\n", tools: true})
	if turn.Thread != 1 || len(turn.Steps) != 1 || turn.Steps[0].Call.Name != "run" {
		t.Errorf("%+v", turn)
	}
}

// TestResultsThatStandOtherwiseAtTheEnd: a call that is asked about once more with another result has another result.
func TestResultsThatStandOtherwiseAtTheEnd(t *testing.T) {
	var book conversation.Book
	book.Observe(request{lines: "user go\n", tools: true})
	book.Observe(request{lines: "user go\ncall a\ncall b\nresult a x\nresult b pending\n", tools: true})
	turn := book.Observe(request{lines: "user go\ncall a\ncall b\nresult a x\nresult b done\n", tools: true})
	if turn.Thread != 1 || len(turn.Steps) != 1 || turn.Steps[0].Result.Text != "done" {
		t.Errorf("%+v", turn)
	}
}

// TestWhatIsSaidTwiceBehindWhatIsLeftOut: the same words once more are new, and an old result that is left out is not.
func TestWhatIsSaidTwiceBehindWhatIsLeftOut(t *testing.T) {
	for _, again := range []string{"model done\nuser continue\n", "call b\nresult b ok\n"} {
		var book conversation.Book
		lines := "user go\n"
		for _, more := range []string{"", "call a\nresult a x\n", again} {
			lines += more
			book.Observe(request{lines: lines, tools: true})
		}
		turn := book.Observe(request{lines: "user go\ncall a\nresult a gone\n" + again + again, tools: true})
		news := len(turn.Steps) + len(turn.Said) + len(turn.Told)
		for _, step := range turn.Steps {
			if step.Call.ID == "a" {
				t.Errorf("%q: heard twice: %+v", again, step)
			}
		}
		if turn.Thread != 1 || news != 2 && news != 1 || turn.Compacted {
			t.Errorf("%q: %+v", again, turn)
		}
	}
}

// TestConstantCallsBehindWhatIsSaidOtherwise: each result of a loop is heard, also where the words before it change.
func TestConstantCallsBehindWhatIsSaidOtherwise(t *testing.T) {
	var book conversation.Book
	ask := func(lines string) conversation.Turn {
		turn := book.Observe(request{lines: lines, tools: true})
		book.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{ID: "c0", Name: "run"}}})
		return turn
	}
	ask("user go\nuser it is 1\n")
	ask("user go\nuser it is 2\ncall c0\nresult c0 ok\n")
	ask("user go\nuser it is 3\ncall c0\nresult c0 ok\nmodel and\ncall c0\nresult c0 ok\n")
	turn := ask("user go\nuser it is 4\ncall c0\nresult c0 ok\nmodel and\ncall c0\nresult c0 ok\nmodel or\ncall c0\nresult c0 ok\n")
	if len(turn.Steps) != 1 || turn.Steps[0].Call.Name != "run" {
		t.Errorf("%+v", turn)
	}
}

// TestAskedOnceMoreWithOtherFirstWords: an answer that fails, or has no calls, does not end a conversation whose first words change.
func TestAskedOnceMoreWithOtherFirstWords(t *testing.T) {
	for _, answered := range []bool{false, true} {
		var book conversation.Book
		book.Observe(request{lines: "user it is 1\n", tools: true})
		book.Answered(1, &conversation.Answer{Tools: []conversation.Tool{{ID: "a", Name: "run"}}})
		book.Observe(request{lines: "user it is 2\ncall a\nresult a x\n", tools: true})
		if answered {
			book.Answered(1, &conversation.Answer{})
		}
		turn := book.Observe(request{lines: "user it is 3\ncall a\nresult a x\n", tools: true})
		if turn.Thread != 1 || len(turn.Steps) != 0 {
			t.Errorf("answered %v: %+v", answered, turn)
		}
	}
}

// TestConstantCallsOfTwoAgentsWhoseFirstWordsChange: what the model is told beside the messages tells them apart.
func TestConstantCallsOfTwoAgentsWhoseFirstWordsChange(t *testing.T) {
	var book conversation.Book
	for i, agent := range []string{"main", "sub"} {
		book.Observe(request{lines: agent + " 1\n", system: agent, tools: true})
		book.Answered(i+1, &conversation.Answer{Tools: []conversation.Tool{{ID: "c0", Name: "run"}}})
	}
	for i, agent := range []string{"main", "sub"} {
		turn := book.Observe(request{lines: "user " + agent + " 2\ncall c0\nresult c0 x\n", system: agent, tools: true})
		if turn.Thread != i+1 || len(turn.Steps) != 1 {
			t.Errorf("%s: %+v", agent, turn)
		}
	}
}

// TestManyOldResultsLeftOut, the newest one of the last request among them: it is not heard twice.
func TestManyOldResultsLeftOut(t *testing.T) {
	var book conversation.Book
	book.Observe(request{lines: "user go\ncall a\nresult a x\ncall b\nresult b y\ncall c\nresult c z\n", tools: true})
	turn := book.Observe(request{lines: "user go\ncall a\nresult a gone\ncall b\nresult b gone\ncall c\nresult c gone\ncall d\nresult d w\n", tools: true})
	if turn.Thread != 1 || len(turn.Steps) != 1 || turn.Steps[0].Call.ID != "d" {
		t.Errorf("%+v", turn)
	}
}

// TestResumedConversationWithSomethingPutIn: it is no other agent's.
func TestResumedConversationWithSomethingPutIn(t *testing.T) {
	var book conversation.Book
	book.Observe(request{lines: "user go\ncall a\nresult a x\nmodel done\nuser continue\n", tools: true})
	turn := book.Observe(request{lines: "user go\ncall a\nresult a gone\nuser bear in mind\nmodel done\nuser continue\n", tools: true})
	if turn.Thread != 1 {
		t.Errorf("%+v", turn)
	}
}

// TestAnyOrderOfRequests: whatever clients send after what they have sent, nothing is out of bounds, and what is counted is what was sent. A book
// that is asked first what it knows of a request hears the same, also where it hears others before that request.
func TestAnyOrderOfRequests(t *testing.T) {
	entries := rapid.SampledFrom([]string{"user a", "user b", "user  b", "call c", "call d", "result c x", "result d y", "noted c x", "model m", "result c z"})
	rapid.Check(t, func(t *rapid.T) {
		var book, asked conversation.Book
		sent := [][]string{nil}
		join := func(list []string) (lines string) {
			for _, entry := range list {
				lines += entry + "\n"
			}
			return lines
		}
		observe := func(r request) conversation.Turn {
			turn := asked.Observe(r)
			r.known = conversation.Known{}
			if diff := cmp.Diff(book.Observe(r), turn); diff != "" {
				t.Fatalf("%q (-not asked +asked):\n%s", r.lines, diff)
			}
			return turn
		}
		for range rapid.IntRange(2, 12).Draw(t, "requests") {
			before := rapid.SampledFrom(sent).Draw(t, "before")
			list := slices.Clone(before[:rapid.IntRange(0, len(before)).Draw(t, "kept")])
			list = append(list, rapid.SliceOfN(entries, 0, 4).Draw(t, "more")...)
			if len(list) > 0 && rapid.Bool().Draw(t, "alters") {
				list[rapid.IntRange(0, len(list)-1).Draw(t, "altered")] = entries.Draw(t, "otherwise")
			}
			sent = append(sent, list)
			r := request{lines: join(list), tools: rapid.Bool().Draw(t, "tools"), system: rapid.SampledFrom([]string{"", "s"}).Draw(t, "system")}
			r.known = asked.Known(r.List())
			if rapid.Bool().Draw(t, "beside") {
				other := rapid.SampledFrom(sent).Draw(t, "other")
				observe(request{lines: join(append(slices.Clip(other), "user z")), tools: rapid.Bool().Draw(t, "with tools")})
			}
			turn := observe(r)
			if turn.Known > turn.Messages || turn.Messages != len(list) || len(turn.Ends) != len(list) {
				t.Fatalf("%q: %+v", list, turn)
			}
			if tool := rapid.SampledFrom([]string{"", "c", "d"}).Draw(t, "called"); tool != "" {
				for _, b := range []*conversation.Book{&book, &asked} {
					b.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{ID: tool, Name: "run"}}})
				}
			}
		}
	})
}
