// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// TestWhatStandsWhereItStood: which entries of a request stand where the one before had them, and whether what stood behind those was for that one
// alone. The model has called c0 before, and a1 in answer to the last request.
func TestWhatStandsWhereItStood(t *testing.T) {
	const begin = "user go\ncall c0\nresult c0 x\n"
	const long = begin + begin + begin // more than an agent has that begins
	for name, tc := range map[string]struct {
		before, after string
		aligned       int
		fleeting      bool
		tail          int
	}{
		"all":                              {begin, begin + "call a1\nresult a1 y\n", 3, true, 0},
		"the same again":                   {begin, begin, 3, true, 0},
		"the time":                         {"user 1\ncall c0\nresult c0 x\n", "user 2\ncall c0\nresult c0 x\ncall a1\nresult a1 y\n", 3, true, 0},
		"the time alone":                   {"user 1\n", "user 2\ncall a1\nresult a1 y\n", 1, true, 0},
		"an old result":                    {begin + "model m\nuser more\n", "user go\ncall c0\nresult c0 gone\nmodel m\nuser more\ncall a1\nresult a1 y\n", 5, true, 0},
		"the last result":                  {begin, "user go\ncall c0\nresult c0 gone\ncall a1\nresult a1 y\n", 3, true, 0},
		"the last result, no answer":       {long + begin, long + "user go\ncall c0\nresult c0 gone\n", 12, true, 0},
		"the last result, and words":       {begin, "user go\ncall c0\nresult c0 gone\nmodel done\nuser more\n", 3, true, 0},
		"the last words":                   {"user go\nmodel m\nuser more, and mind\n", "user go\nmodel m\nuser more\ncall a1\nresult a1 y\n", 3, true, 0},
		"a reminder":                       {begin + "user mind\n", begin + "call a1\nresult a1 y\nuser mind\n", 3, true, 1},
		"a reminder, and words":            {begin + "user mind\n", begin + "model done\nuser more\nuser mind\n", 3, true, 1},
		"a reminder, and words alone":      {long + "user mind\n", long + "user more\nuser mind\n", 9, true, 1},
		"two reminders":                    {begin + "user mind\nmodel I\n", begin + "call a1\nresult a1 y\nuser mind\nmodel I\n", 3, true, 2},
		"another reminder":                 {begin + "user it is 1\n", begin + "call a1\nresult a1 y\nuser it is 2\n", 3, true, 0},
		"another reminder, and words":      {long + "user it is 1\n", long + "model done\nuser more\nuser it is 2\n", 9, true, 0},
		"a reminder left out, no answer":   {long + "user mind\n", long, 9, true, 0},
		"a reminder no more":               {begin + "user mind\n", begin + "call a1\nresult a1 y\n", 3, true, 0},
		"a reminder and the result":        {begin + "user mind\n", "user go\ncall c0\nresult c0 gone\ncall a1\nresult a1 y\nuser mind\n", 3, true, 1},
		"other words":                      {long + "model m\nuser more\n", long + "model m\nuser less\n", 10, false, 0},
		"another branch":                   {long + "model m\nuser more\n", long + "model m\nuser less\ncall b\nresult b y\n", 10, false, 0},
		"what was there before":            {long + "call c1\nresult c1 x\n", long + "user otherwise\n", 9, false, 0},
		"a summary":                        {long + "call c1\nresult c1 x\n", "user go\nuser summary\n", 1, false, 0},
		"a summary of the model's":         {long + "call c1\nresult c1 x\n", "user go\nmodel summary\nuser go on\n", 1, false, 0},
		"the oldest left out":              {begin + "call c1\nresult c1 y\n", "user go\ncall c1\nresult c1 y\ncall a1\nresult a1 z\n", 1, false, 0},
		"something put in":                 {begin, "user go\nuser mind\ncall c0\nresult c0 x\ncall a1\nresult a1 z\n", 1, false, 0},
		"the same once more":               {begin + "user mind\n", begin + "model m\ncall c0\nresult c0 x\nuser mind\n", 3, true, 1},
		"something put in before the same": {"user go\ncall c0\nresult c0 x\n", "user go\nuser mind\ncall c0\nresult c0 x\n", 1, false, 0},
		"the system says more":             {"system be kind\n" + begin, "system be kind\nsystem be brief\n" + begin + "call a1\nresult a1 y\n", 0, false, 0},
		"the system says otherwise":        {"system be kind\n" + begin, "system be brief\n" + begin + "call a1\nresult a1 y\n", 4, true, 0},
	} {
		for _, again := range []bool{false, true} {
			var book conversation.Book
			if long, ok := strings.CutPrefix(tc.before, long); ok && long != "" {
				book.Observe(system{request{lines: tc.before[:len(tc.before)-len(long)], tools: true}})
			}
			book.Observe(system{request{lines: tc.before, tools: true}})
			if book.Answered(1, &conversation.Answer{Tools: []conversation.Tool{{ID: "a1", Name: "run"}}}); strings.HasPrefix(name, "a summary") {
				book.Answered(1, &conversation.Answer{}) // what is compacted waits for no call
			}
			if again { // a watchdog that begins anew
				data, err := json.Marshal(book)
				if err != nil {
					t.Fatal(err)
				}
				if book = (conversation.Book{}); json.Unmarshal(data, &book) != nil {
					t.Fatal(string(data))
				}
			}
			turn := book.Observe(system{request{lines: tc.after, tools: true}})
			if turn.Thread != 1 || turn.Aligned != tc.aligned || turn.Fleeting != tc.fleeting || turn.Tail != tc.tail {
				t.Errorf("%s, begun anew %v: thread %d, %d aligned, fleeting %v, tail %d; want %d, %v, %d", name, again, turn.Thread, turn.Aligned, turn.Fleeting, turn.Tail, tc.aligned, tc.fleeting, tc.tail)
			}
		}
	}
}

// chainOf a thread: the digests of its messages.
func chainOf(b *conversation.Book, thread int) []conversation.Digest {
	for _, t := range b.Threads {
		if t.ID == thread {
			return slices.Clone(t.Chain)
		}
	}
	return nil
}

// TestChainsOfThreadsThatBeginAlike: a question about a conversation has its messages, and each of the two goes on with its own.
func TestChainsOfThreadsThatBeginAlike(t *testing.T) {
	var book conversation.Book
	lines := "user a\n"
	for i := range 9 {
		if turn := book.Observe(request{lines: lines, tools: true}); turn.Thread != 1 {
			t.Fatalf("%q is of thread %d", lines, turn.Thread)
		}
		asks := request{lines: lines + "user sum up\nmodel well\n"}
		thread := book.Observe(asks).Thread
		lines += fmt.Sprintf("call %d\nresult %d x\n", i, i)
		book.Observe(request{lines: lines, tools: true})
		var alone conversation.Book
		alone.Observe(asks)
		if want := chainOf(&alone, 1); thread == 1 || !slices.Equal(chainOf(&book, thread), want) {
			t.Fatalf("%q is of thread %d, which remembers %x, want %x", asks.lines, thread, chainOf(&book, thread), want)
		}
	}
}

// TestAnyOrderOfRequests: whatever clients send after what they have sent, nothing is out of bounds, and what is counted is what was sent. A book
// that is asked first what it knows of a request hears the same, also where it hears others before that request, and remembers of each
// thread the messages that are in its newest request, whatever has been read of them.
func TestAnyOrderOfRequests(t *testing.T) {
	entries := rapid.SampledFrom([]string{"user a", "user b", "user  b", "call c", "call d", "result c x", "result d y", "noted c x", "model m", "result c z"})
	rapid.Check(t, func(t *rapid.T) {
		var book, asked conversation.Book
		sent, chains := [][]string{nil}, map[int][]conversation.Digest{}
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
			var alone conversation.Book // which reads all of it
			read := 0
			r.read = &read
			if ends := alone.Observe(r).Ends; !slices.Equal(ends, turn.Ends) || read != len(ends) {
				t.Fatalf("%q: the entries end at %d, and at %d where all %d are read", r.lines, turn.Ends, ends, read)
			}
			chains[turn.Thread] = chainOf(&alone, 1)
			for thread, want := range chains {
				if diff := cmp.Diff(want, chainOf(&asked, thread)); diff != "" {
					t.Fatalf("%q: thread %d remembers other messages (-read +remembered):\n%s", r.lines, thread, diff)
				}
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
			if rapid.Bool().Draw(t, "inserts") {
				list = slices.Insert(list, rapid.IntRange(0, len(list)).Draw(t, "inserted at"), entries.Draw(t, "inserted"))
			}
			if len(list) > 0 && rapid.Bool().Draw(t, "cuts") {
				from := rapid.IntRange(0, len(list)-1).Draw(t, "cut from")
				list = slices.Delete(list, from, rapid.IntRange(from, len(list)).Draw(t, "cut to"))
			}
			sent = append(sent, list)
			if list = slices.Clone(list); len(list) > 0 && rapid.Bool().Draw(t, "marks") {
				list[len(list)-1] += mark
			}
			r := request{lines: join(list), tools: rapid.Bool().Draw(t, "tools"), system: rapid.SampledFrom([]string{"", "s"}).Draw(t, "system")}
			r.known = asked.Known(r.List())
			if rapid.Bool().Draw(t, "beside") {
				other := rapid.SampledFrom(sent).Draw(t, "other")
				observe(request{lines: join(append(slices.Clip(other), "user z")), tools: rapid.Bool().Draw(t, "with tools")})
			}
			turn := observe(r)
			if turn.Aligned+turn.Tail > turn.Messages || turn.Messages != len(list) || len(turn.Ends) != len(list) {
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
