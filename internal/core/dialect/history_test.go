// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// wire is how the client of a dialect writes its requests, in the structure that it has and with words of our own.
type wire struct {
	dialect string
	// lead is what every conversation begins with.
	lead []string
	// body of a request; with a system prompt that is not the agent's where it is given.
	body func(system string, tools bool, entries []string) string
	// Entries: of people, of the model, a call, and its result.
	user, model  func(text string) string
	call, result func(id, text string) string
	// summarized gives the entries that a client begins with after a summary.
	summarized func(prompt, summary string) []string
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func wires() []wire {
	list := func(name string, entries []string) string {
		return `"` + name + `":[` + strings.Join(entries, ",") + "]"
	}
	return []wire{
		{
			dialect: "anthropic",
			body: func(system string, tools bool, entries []string) string {
				return `{"model":"m",` + list("messages", entries) + `,"system":[{"type":"text","text":"x-anthropic-billing-header: v=` + fmt.Sprint(len(entries)) + `;"},{"type":"text","text":` +
					quote("You work."+system) + `,"cache_control":{"type":"ephemeral"}}]` + map[bool]string{true: `,"tools":[{"name":"Bash"}]`, false: `,"tools":[]`}[tools] + `,"stream":true}`
			},
			user: func(text string) string {
				return `{"role":"user","content":[{"type":"text","text":` + quote(text) + `}]}`
			},
			model: func(text string) string {
				return `{"role":"assistant","content":[{"type":"text","text":` + quote(text) + `}]}`
			},
			call: func(id, command string) string {
				return `{"role":"assistant","content":[{"type":"thinking","thinking":"well","signature":"cw=="},{"type":"tool_use","id":"` + id + `","name":"Bash","input":{"command":` + quote(command) + `}}]}`
			},
			result: func(id, text string) string {
				return `{"role":"user","content":[{"tool_use_id":"` + id + `","type":"tool_result","content":` + quote(text) + `,"is_error":false}]}`
			},
			summarized: func(_, summary string) []string {
				return []string{`{"role":"user","content":` + quote("Continued: "+summary) + `}`}
			},
		},
		{
			dialect: "openai-responses",
			lead: []string{
				`{"type":"message","role":"developer","content":[{"type":"input_text","text":"Everything is allowed."}]}`,
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>linux</environment_context>"}]}`,
			},
			body: func(system string, tools bool, entries []string) string {
				return `{"model":"m","instructions":` + quote("You work."+system) + `,` + list("input", entries) + map[bool]string{true: `,"tools":[{"type":"function","name":"exec_command"}]`, false: `,"tools":[]`}[tools] + `,"stream":true}`
			},
			user: func(text string) string {
				return `{"type":"message","role":"user","content":[{"type":"input_text","text":` + quote(text) + `}]}`
			},
			model: func(text string) string {
				return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quote(text) + `}]}`
			},
			call: func(id, command string) string {
				return `{"type":"function_call","name":"exec_command","arguments":` + quote(`{"cmd":`+quote(command)+`}`) + `,"call_id":"` + id + `"}`
			},
			result: func(id, text string) string {
				return `{"type":"function_call_output","call_id":"` + id + `","output":` + quote(text) + `}`
			},
			summarized: func(prompt, summary string) []string {
				return []string{
					`{"type":"message","role":"developer","content":[{"type":"input_text","text":"Everything is allowed."}]}`,
					`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>linux</environment_context>"}]}`,
					`{"type":"message","role":"user","content":[{"type":"input_text","text":` + quote(prompt) + `}]}`,
					`{"type":"message","role":"user","content":[{"type":"input_text","text":` + quote("Another model wrote: "+summary) + `}]}`,
				}
			},
		},
		{
			dialect: "openai-chat",
			body: func(system string, tools bool, entries []string) string {
				return `{"model":"m",` + list("messages", append([]string{`{"role":"system","content":` + quote("You work."+system) + `}`}, entries...)) +
					map[bool]string{true: `,"tools":[{"type":"function","function":{"name":"bash"}}]`, false: ``}[tools] + `,"stream":true}`
			},
			user:  func(text string) string { return `{"role":"user","content":` + quote(text) + `}` },
			model: func(text string) string { return `{"role":"assistant","content":` + quote(text) + `}` },
			call: func(id, command string) string {
				return `{"role":"assistant","content":"","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"bash","arguments":` + quote(`{"command":`+quote(command)+`}`) + `}}]}`
			},
			result: func(id, text string) string {
				return `{"role":"tool","tool_call_id":"` + id + `","content":` + quote(text) + `}`
			},
			summarized: func(_, summary string) []string {
				return []string{`{"role":"user","content":"What did we do so far?"}`, `{"role":"assistant","content":` + quote(summary) + `}`, `{"role":"user","content":"Go on."}`}
			},
		},
		{
			dialect: "gemini",
			lead:    []string{`{"parts":[{"text":"<session_context>linux</session_context>"}],"role":"user"}`},
			body: func(system string, tools bool, entries []string) string {
				return `{` + list("contents", entries) + `,"systemInstruction":{"role":"user","parts":[{"text":` + quote("You work."+system) + `}]}` +
					map[bool]string{true: `,"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}]`, false: ``}[tools] + `,"generationConfig":{"temperature":1}}`
			},
			user:  func(text string) string { return `{"role":"user","parts":[{"text":` + quote(text) + `}]}` },
			model: func(text string) string { return `{"role":"model","parts":[{"text":` + quote(text) + `}]}` },
			call: func(id, command string) string {
				return `{"role":"model","parts":[{"thought":true,"text":"well"},{"functionCall":{"id":"` + id + `","name":"run_shell_command","args":{"command":` + quote(command) + `}},"thoughtSignature":"cw=="}]}`
			},
			result: func(id, text string) string {
				return `{"role":"user","parts":[{"functionResponse":{"id":"` + id + `","name":"run_shell_command","response":{"output":` + quote(text) + `}}}]}`
			},
			summarized: func(_, summary string) []string {
				return []string{
					`{"role":"user","parts":[{"text":` + quote("<state_snapshot>"+summary+"</state_snapshot>") + `}]}`,
					`{"role":"model","parts":[{"text":"Got it."}]}`,
				}
			},
		},
	}
}

// listener hears the requests of a run.
type listener struct {
	t    *testing.T
	wire wire
	book conversation.Book
}

func (l *listener) hears(system string, tools bool, entries []string) conversation.Turn {
	l.t.Helper()
	r, err := find(l.wire.dialect).ReadRequest([]byte(l.wire.body(system, tools, entries)))
	if err != nil {
		l.t.Fatal(err)
	}
	return l.book.Observe(r.Conversation())
}

// acts says that the model has called a tool in its answer.
func (l *listener) acts(turn conversation.Turn) {
	l.book.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{Name: "x"}}})
}

// main begins the conversation about the task, of so many turns.
func (l *listener) main(turns int) []string {
	l.t.Helper()
	entries := append([]string{}, l.wire.lead...)
	entries = append(entries, l.wire.user("Fix the login."))
	for i := range turns {
		l.acts(l.hears("", true, entries))
		id := fmt.Sprint("c", i)
		entries = append(entries, l.wire.call(id, fmt.Sprint("step ", i)), l.wire.result(id, fmt.Sprint("result ", i)))
	}
	l.acts(l.hears("", true, entries))
	return entries
}

func (l *listener) want(what string, turn conversation.Turn, thread int, kind conversation.Kind, number int, compacted, again bool) {
	l.t.Helper()
	if turn.Thread != thread || turn.Kind != kind || turn.Number != number || turn.Compacted != compacted || turn.Again != again {
		l.t.Errorf("%s, %s: thread %d %s, turn %d, compacted %v, again %v; want thread %d %s, turn %d, compacted %v, again %v",
			l.wire.dialect, what, turn.Thread, turn.Kind, turn.Number, turn.Compacted, turn.Again, thread, kind, number, compacted, again)
	}
}

// steps of a turn, as call, result and failure.
func steps(turn conversation.Turn) (list []string) {
	for _, s := range turn.Steps {
		list = append(list, fmt.Sprintf("%s %s: %s %s", s.Call.ID, s.Call.Name, s.Result.Text, s.Failure))
	}
	return list
}

func each(t *testing.T, try func(t *testing.T, l *listener)) {
	t.Helper()
	for _, w := range wires() {
		t.Run(w.dialect, func(t *testing.T) { try(t, &listener{t: t, wire: w}) })
	}
}

// TestThreads: the conversation about the task, questions beside it and agents that work for it are told apart, however they take turns.
func TestThreads(t *testing.T) {
	each(t, func(_ *testing.T, l *listener) {
		l.want("a title", l.hears("Write a title.", false, []string{l.wire.user("Fix the login.")}), 1, conversation.KindSide, 1, false, false)
		entries := l.main(1)
		sub := append(append([]string{}, l.wire.lead...), l.wire.user("Look at the session."))
		turn := l.hears(" For another.", true, sub)
		l.want("an agent", turn, 3, conversation.KindSub, 1, false, false)
		l.acts(turn)
		other := append(append([]string{}, l.wire.lead...), l.wire.user("Look at the cookie."))
		l.want("another agent", l.hears(" For another.", true, other), 4, conversation.KindSub, 1, false, false)
		l.want("a title of another thing", l.hears("Write a title.", false, []string{l.wire.user("What now?")}), 5, conversation.KindSide, 1, false, false)
		sub = append(sub, l.wire.call("s0", "cat session.go"), l.wire.result("s0", "package session"))
		l.want("the agent's next turn", l.hears(" For another.", true, sub), 3, conversation.KindSub, 2, false, false)
		entries = append(entries, l.wire.call("c9", "agent"), l.wire.result("c9", "It is the cookie."))
		turn = l.hears("", true, entries)
		l.want("the main one", turn, 2, conversation.KindMain, 3, false, false)
		if diff := cmp.Diff(1, len(steps(turn))); diff != "" || turn.Aligned != turn.Messages-2 {
			l.t.Errorf("%s: %v, %d of %d messages stand where they stood", l.wire.dialect, steps(turn), turn.Aligned, turn.Messages)
		}
	})
}

// TestTitleOfTheSameWords: a question whose words are those of the task is no beginning of the conversation about it.
func TestTitleOfTheSameWords(t *testing.T) {
	each(t, func(_ *testing.T, l *listener) {
		l.want("a title", l.hears("", false, append(append([]string{}, l.wire.lead...), l.wire.user("Fix the login."))), 1, conversation.KindSide, 1, false, false)
		l.main(0)
		entries := append(append([]string{}, l.wire.lead...), l.wire.user("Fix the login."), l.wire.call("c0", "ls"), l.wire.result("c0", "a"))
		l.want("the main one", l.hears("", true, entries), 2, conversation.KindMain, 2, false, false)
	})
}

// TestQuestionAboutAll: a question about the whole conversation, after which that goes on as if nothing was.
func TestQuestionAboutAll(t *testing.T) {
	each(t, func(_ *testing.T, l *listener) {
		entries := l.main(2)
		l.want("the question", l.hears("Sum up.", false, append(append([]string{}, entries...), l.wire.user("What is next?"))), 2, conversation.KindSide, 1, false, false)
		entries = append(entries, l.wire.call("c9", "ls"), l.wire.result("c9", "a"))
		turn := l.hears("", true, entries)
		l.want("the main one", turn, 1, conversation.KindMain, 4, false, false)
		l.acts(turn)
		sub := append(append([]string{}, l.wire.lead...), l.wire.user("Look at the session."))
		l.want("an agent", l.hears(" For another.", true, sub), 3, conversation.KindSub, 1, false, false)
	})
}

// TestCompaction: after a summary the conversation is the same thread, and nothing is heard twice.
func TestCompaction(t *testing.T) {
	each(t, func(_ *testing.T, l *listener) {
		for _, turns := range []int{1, 6} {
			l.book = conversation.Book{}
			entries := l.main(turns)
			l.want("the summary", l.hears("Sum up.", false, append(append([]string{}, entries...), l.wire.user("Sum up."))), 2, conversation.KindSide, 1, false, false)
			next := l.wire.summarized("Fix the login.", "All is fixed but the cookie.")
			turn := l.hears("", true, next)
			l.want("what follows", turn, 1, conversation.KindMain, turns+2, true, false)
			if len(turn.Steps) > 0 {
				l.t.Errorf("%s: steps %v are heard again", l.wire.dialect, steps(turn))
			}
			l.acts(turn)
			next = append(next, l.wire.call("d0", "ls"), l.wire.result("d0", "a"))
			turn = l.hears("", true, next)
			l.want("the turn after it", turn, 1, conversation.KindMain, turns+3, false, false)
			if len(turn.Steps) != 1 {
				l.t.Errorf("%s: steps %v, want one", l.wire.dialect, steps(turn))
			}
		}
	})
}

// TestSummaryWithTools: a client that asks for the summary in the same setting, so that the provider's cache serves it.
func TestSummaryWithTools(t *testing.T) {
	each(t, func(_ *testing.T, l *listener) {
		entries := l.main(6)
		l.want("the summary", l.hears("", true, append(append([]string{}, entries...), l.wire.user("Sum up. Call no tools."))), 1, conversation.KindMain, 8, false, false)
		turn := l.hears("", true, l.wire.summarized("Fix the login.", "All is fixed but the cookie."))
		l.want("what follows", turn, 1, conversation.KindMain, 9, true, false)
	})
}

// TestOldResultsTakenOut: a client that empties old results in the midst of the conversation says nothing new by it.
func TestOldResultsTakenOut(t *testing.T) {
	each(t, func(_ *testing.T, l *listener) {
		entries := l.main(6)
		for i := range 4 {
			at := len(l.wire.lead) + 2 + 2*i
			entries[at] = l.wire.result(fmt.Sprint("c", i), "[Old tool result content cleared]")
		}
		entries = append(entries, l.wire.call("c6", "ls"), l.wire.result("c6", "a"))
		turn := l.hears("", true, entries)
		l.want("the turn", turn, 1, conversation.KindMain, 8, true, false)
		if got := steps(turn); len(got) != 1 || !strings.HasPrefix(got[0], "c6 ") {
			l.t.Errorf("%s: steps %v, want the one of c6", l.wire.dialect, got)
		}
		if turn.Aligned != turn.Messages-2 {
			l.t.Errorf("%s: %d of %d messages stand where they stood", l.wire.dialect, turn.Aligned, turn.Messages)
		}
	})
}

// TestAgain: a request that is sent once more says nothing new.
func TestAgain(t *testing.T) {
	each(t, func(_ *testing.T, l *listener) {
		entries := l.main(3)
		turn := l.hears("", true, entries)
		l.want("the same", turn, 1, conversation.KindMain, 4, false, true)
		if len(turn.Steps)+len(turn.Said)+len(turn.Told) > 0 || turn.Aligned != turn.Messages {
			l.t.Errorf("%s: %+v is said again", l.wire.dialect, turn)
		}
	})
}

// TestWhatIsMeasuredOfACall: two calls of Codex that come to the same have the same result, and its exit code counts.
func TestWhatIsMeasuredOfACall(t *testing.T) {
	for name, results := range map[string][2]string{
		"exec_command": {
			"Chunk ID: 6e6db0\nWall time: 0.0512 seconds\nProcess exited with code 2\nOriginal token count: 12\nOutput:\nWall time: 7 seconds\n",
			"Chunk ID: ab12cd\nWall time: 1.5000 seconds\nProcess exited with code 2\nOriginal token count: 12\nOutput:\nWall time: 7 seconds\n",
		},
		"exec_command without output": {
			"Chunk ID: 6e6db0\nWall time: 0.0512 seconds\nProcess exited with code 1\nOriginal token count: 0\nOutput:\n",
			"Process exited with code 1",
		},
		"shell": {`{"output":"no\n","metadata":{"exit_code":2,"duration_seconds":0.1}}`, `{"output":"no\n","metadata":{"exit_code":2,"duration_seconds":1.2e-05}}`},
	} {
		var steps []conversation.Step
		for _, output := range results {
			var book conversation.Book
			r, err := find("openai-responses").ReadRequest([]byte(`{"model":"m","tools":[1],"input":[{"type":"function_call","name":"x","arguments":"{}","call_id":"a"},{"type":"function_call_output","call_id":"a","output":` + quote(output) + `}]}`))
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, book.Observe(r.Conversation()).Steps...)
		}
		if len(steps) != 2 || steps[0].Result != steps[1].Result || steps[0].Failure != conversation.FailureExit {
			t.Errorf("%s: %+v", name, steps)
		}
		if name == "exec_command" && !strings.Contains(steps[0].Result.Text, "Wall time: 7 seconds") {
			t.Errorf("%s: what the command printed is gone: %q", name, steps[0].Result.Text)
		}
	}
}

// TestNumbersOfProcesses: Gemini CLI and Qwen Code say which processes a command had. Two calls that come to the same have the same result all the same,
// what the command printed is all there, and the exit code counts.
func TestNumbersOfProcesses(t *testing.T) {
	requests := map[string]func(output string) string{
		"gemini": func(output string) string {
			return `{"tools":[1],"contents":[{"role":"model","parts":[{"functionCall":{"name":"x","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"output":` + quote(output) + `}}}]}]}`
		},
		"openai-chat": func(output string) string {
			return `{"model":"m","tools":[1],"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":` + quote(output) + `}]}`
		},
	}
	long := strings.Repeat("Process Group PGID: 7 is of the command\n", 40)
	for name, results := range map[string][2]string{
		"Gemini CLI":        {"<untrusted_context>\nOutput: no\nExit Code: 1\nProcess Group PGID: 26282\n</untrusted_context>", "<untrusted_context>\nOutput: no\nExit Code: 1\nProcess Group PGID: 31\n</untrusted_context>"},
		"in the background": {"Output: no\nExit Code: 1\nBackground PIDs: 31, 32\nProcess Group PGID: 26282", "Output: no\nExit Code: 1\nBackground PIDs: 41, 42\nProcess Group PGID: 33"},
		"Qwen Code":         {"Command: a\nDirectory: (root)\nOutput: no\nError: (none)\nExit Code: 1\nSignal: (none)\nProcess Group PGID: 3", "Command: a\nDirectory: (root)\nOutput: no\nError: (none)\nExit Code: 1\nSignal: (none)\nProcess Group PGID: (none)"},
		"of the command":    {"Output: " + long + "Exit Code: 1\nProcess Group PGID: 1", "Output: " + long + "Exit Code: 1\nProcess Group PGID: 2"},
	} {
		for speaks, request := range requests {
			var steps []conversation.Step
			for _, output := range append(results[:], strings.Replace(results[0], "Output: ", "Output: x", 1)) {
				var book conversation.Book
				r, err := find(speaks).ReadRequest([]byte(request(output)))
				if err != nil {
					t.Fatal(err)
				}
				steps = append(steps, book.Observe(r.Conversation()).Steps...)
			}
			if len(steps) != 3 || steps[0].Result != steps[1].Result || steps[0].Result == steps[2].Result || steps[0].Failure != conversation.FailureExit {
				t.Errorf("%s, %s: %+v", name, speaks, steps)
			}
		}
	}
}

// TestResultsGivenTwice: Gemini CLI gives each result of a session that it goes on with twice, under one ID. It is one result, and the conversation the same.
func TestResultsGivenTwice(t *testing.T) {
	const (
		asked  = `{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"id":"c","name":"x","args":{}}},{"functionCall":{"id":"d","name":"x","args":{}}}]}`
		first  = `{"functionResponse":{"id":"c","name":"x","response":{"output":"no"}}}`
		second = `{"functionResponse":{"id":"d","name":"x","response":{"output":"no"}}}`
	)
	var book conversation.Book
	observe := func(contents string) conversation.Turn {
		t.Helper()
		r, err := find("gemini").ReadRequest([]byte(`{"tools":[1],"contents":[` + contents + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		return book.Observe(r.Conversation())
	}
	if turn := observe(asked + `,{"role":"user","parts":[` + first + `,` + second + `]}`); len(turn.Steps) != 2 {
		t.Errorf("at first: %+v", turn.Steps)
	}
	turn := observe(asked + `,{"role":"user","parts":[` + first + `,` + second + `,` + first + `,` + second + `]},{"role":"model","parts":[{"text":"b"}]},{"role":"user","parts":[{"text":"go on"}]}`)
	if len(turn.Steps) != 0 || turn.Thread != 1 || turn.Aligned != 3 {
		t.Errorf("with results given twice: %+v", turn)
	}
}

// TestMarksThatMove: Claude Code marks the last messages for the provider's cache, and writes a text as a list of blocks for it. No other
// message than the last ones is read again, and none is new.
func TestMarksThatMove(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	bodies := []string{
		`{"role":"user","content":[{"type":"text","text":"Go."` + mark + `}]}`,
		`{"role":"user","content":"Go."},{"role":"assistant","content":[{"type":"text","text":"Yes."},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]},` +
			`{"role":"user","content":[{"tool_use_id":"a","type":"tool_result","content":"x","is_error":false` + mark + `}]}`,
		`{"role":"user","content":"Go."},{"role":"assistant","content":[{"type":"text","text":"Yes."},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]},` +
			`{"role":"user","content":[{"tool_use_id":"a","type":"tool_result","content":[{"type":"text","text":"x"}]}]},{"role":"assistant","content":"Now."},` +
			`{"role":"user","content":[{"type":"text","text":"And then?"` + mark + `}]}`,
	}
	var book conversation.Book
	for i, list := range bodies {
		r, err := find("anthropic").ReadRequest([]byte(`{"model":"m","messages":[` + list + `],"tools":[{"name":"Bash"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		turn := book.Observe(r.Conversation())
		if turn.Thread != 1 || turn.Compacted || turn.Aligned != []int{0, 1, 3}[i] || len(turn.Steps) != []int{0, 1, 0}[i] {
			t.Errorf("request %d: thread %d, %d aligned, compacted %v, %d steps", i, turn.Thread, turn.Aligned, turn.Compacted, len(turn.Steps))
		}
	}
}

// TestLongerNumber: a number that a request has had in its list is another one where more of it follows, and what comes behind it is read.
func TestLongerNumber(t *testing.T) {
	for _, d := range dialect.All() {
		for before, now := range map[string]string{`[1]`: `[1.5,"words",{}]`, `[ {},1,{}]`: `[ {},12]`, `[-1 ]`: `[-1e3, {}]`, `7`: `75`} {
			var book, fresh conversation.Book
			observe := func(b *conversation.Book, list string) conversation.Turn {
				t.Helper()
				r, err := d.ReadFurther([]byte(`{"model":"m","`+d.History+`":`+list+`}`), nil, nil, b.Known)
				if err != nil {
					t.Fatal(err)
				}
				return b.Observe(r.Conversation())
			}
			observe(&book, before)
			got, want := observe(&book, now), observe(&fresh, now)
			if diff := cmp.Diff(want.Ends, got.Ends); diff != "" {
				t.Errorf("%s: %s after %s (-want +got):\n%s", d.Name, now, before, diff)
			}
			if chain := book.Threads[got.Thread-1].Chain; !slices.Equal(chain, fresh.Threads[0].Chain) {
				t.Errorf("%s: %s after %s is read as other messages", d.Name, now, before)
			}
		}
	}
}
