// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// request is one of lines: each is an entry, which begins with a letter for what it is.
type request struct {
	lines  string
	system string
	tools  bool
	// read counts the entries that were read.
	read  *int
	known conversation.Known
}

// mark is what a client puts behind the last entry of a request, and which says nothing.
const mark = " ^"

func (r request) List() []byte { return []byte(r.lines) }

func (r request) Next(after int) (entry []byte, end int, ok bool) {
	if after >= len(r.lines) {
		return nil, 0, false
	}
	n := strings.IndexByte(r.lines[after:], '\n')
	return []byte(r.lines[after : after+n]), after + n + 1, true
}

func (r request) Message(entry []byte) conversation.Message {
	if r.read != nil {
		*r.read++
	}
	kind, text, _ := strings.Cut(strings.TrimSuffix(string(entry), mark), " ")
	switch kind {
	case "call":
		return conversation.Message{Role: conversation.RoleModel, Calls: []conversation.Call{{ID: text, Name: "run"}}}
	case "result", "noted":
		id, output, _ := strings.Cut(text, " ")
		m := conversation.Message{Role: conversation.RoleUser, Results: []conversation.Result{{ID: id, Text: conversation.QuoteOf(output)}}}
		if kind == "noted" {
			m.Text = conversation.QuoteOf("bear in mind")
		}
		return m
	case "model":
		return conversation.Message{Role: conversation.RoleModel, Text: conversation.QuoteOf(text)}
	default:
		return conversation.Message{Role: conversation.RoleUser, Text: conversation.QuoteOf(text)}
	}
}

func (r request) Setting() (conversation.Digest, bool) {
	return conversation.Sum([]byte(r.system)), r.tools
}

func (r request) Known() conversation.Known { return r.known }

// TestBookReadsWhatIsNew: of a conversation that grows, each entry is read once, also by a watchdog that began anew.
func TestBookReadsWhatIsNew(t *testing.T) {
	var book conversation.Book
	read, steps, lines := 0, 0, "user go\n"
	const turns = 500
	for i := range turns {
		turn := book.Observe(request{lines: lines, tools: true, read: &read})
		steps += len(turn.Steps)
		if turn.Number != i+1 || turn.Compacted || turn.Again || turn.Kind != conversation.KindMain {
			t.Fatalf("turn %d is %+v", i+1, turn)
		}
		lines += fmt.Sprintf("call c%d\nresult c%d done\n", i, i)
	}
	if want := 1 + 2*(turns-1); read != want || steps != turns-1 {
		t.Errorf("%d entries were read, and %d steps heard; want %d and %d", read, steps, want, turns-1)
	}
	data, err := json.Marshal(book)
	if err != nil {
		t.Fatal(err)
	}
	var again conversation.Book
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	turn := again.Observe(request{lines: lines, tools: true})
	if turn.Thread != 1 || turn.Number != turns+1 || turn.Compacted || len(turn.Steps) != 1 || turn.Steps[0].Call.Name != "run" {
		t.Errorf("after a restart: %+v", turn)
	}
	if size := len(data); size > 150*turns {
		t.Errorf("%d bytes are remembered of %d turns", size, turns)
	}
}

// TestWhatStandsAtTheEndOfEachRequest: some clients repeat what the model is to bear in mind, or how its answer begins, behind all that is new.
// That hides nothing, and is heard once.
func TestWhatStandsAtTheEndOfEachRequest(t *testing.T) {
	for _, end := range []string{"user bear in mind\n", "model I will\n", "user bear in mind\nmodel I will\n"} {
		var book conversation.Book
		said, steps, lines := 0, 0, "user go\n"
		for i := range 20 {
			turn := book.Observe(request{lines: lines + end, tools: true})
			book.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{Name: "run"}}})
			steps += len(turn.Steps)
			said += len(turn.Said) + len(turn.Told)
			if turn.Thread != 1 || turn.Number != i+1 || turn.Compacted || turn.Again {
				t.Fatalf("%q: turn %d is %+v", end, i+1, turn)
			}
			lines += fmt.Sprintf("call c%d\nresult c%d done\n", i, i)
		}
		if want := 1 + strings.Count(end, "\n"); steps != 19 || said != want {
			t.Errorf("%q: %d steps and %d texts were heard; want 19 and %d", end, steps, said, want)
		}
		// Old results are left out, and the end stands where it stood.
		turn := book.Observe(request{lines: strings.Replace(lines, "result c3 done", "result c3 left out", 1) + end, tools: true})
		if len(turn.Steps) != 1 || turn.Compacted {
			t.Errorf("%q: %+v", end, turn)
		}
		// A client that asks once more has nothing new to say.
		if turn := book.Observe(request{lines: strings.Replace(lines, "result c3 done", "result c3 left out", 1) + end, tools: true}); !turn.Again {
			t.Errorf("%q: %+v", end, turn)
		}
	}
}

// TestWhatIsPutIntoTheLastMessage: some clients repeat it there, so that each message stands otherwise in the next request. A result is heard
// once all the same; models that number their calls anew in each answer are heard each time.
func TestWhatIsPutIntoTheLastMessage(t *testing.T) {
	for _, format := range []string{"c%[1]d", "c%[2]d"} {
		var book conversation.Book
		steps, lines := 0, "user go\n"
		for i := range 20 {
			sent := lines
			if at := strings.LastIndex(lines, "result"); at >= 0 {
				sent = lines[:at] + "noted" + lines[at+len("result"):]
			}
			turn := book.Observe(request{lines: sent, tools: true})
			book.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{Name: "run"}}})
			if turn.Thread != 1 || turn.Number != i+1 || turn.Again || turn.Compacted {
				t.Fatalf("turn %d is %+v", i+1, turn)
			}
			for _, step := range turn.Steps {
				if steps++; step.Call.Name != "run" {
					t.Errorf("turn %d: %+v", i+1, step)
				}
			}
			id := fmt.Sprintf(format, i, 0)
			lines += fmt.Sprintf("call %s\nresult %s done %d\n", id, id, i)
		}
		if steps != 19 {
			t.Errorf("%s: %d results were heard, want 19", format, steps)
		}
	}
}

// TestWhatIsSaidOtherwiseEachTime: some clients begin each request with the time, or with what the files hold now. What goes on with the calls
// of a conversation belongs to it.
func TestWhatIsSaidOtherwiseEachTime(t *testing.T) {
	var book conversation.Book
	steps, lines := 0, ""
	for i := range 20 {
		turn := book.Observe(request{lines: fmt.Sprintf("user it is %d o'clock, go\n", i) + lines, tools: true})
		id := fmt.Sprint("c", i)
		book.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{ID: id, Name: "run"}}})
		if steps += len(turn.Steps); turn.Thread != 1 || turn.Kind != conversation.KindMain || turn.Number != i+1 || turn.Again || turn.Compacted {
			t.Fatalf("turn %d is %+v", i+1, turn)
		}
		lines += fmt.Sprintf("call %s\nresult %s done %d\n", id, id, i)
	}
	if steps != 19 {
		t.Errorf("%d results were heard, want 19", steps)
	}
	// Another agent begins otherwise, too, and answers no call.
	if turn := book.Observe(request{lines: "user look for it\n", tools: true}); turn.Thread != 2 || turn.Kind != conversation.KindSub {
		t.Errorf("%+v", turn)
	}
}

// TestBookForgets: of more threads than are remembered the ones that were silent for longest go, and never the main one.
func TestBookForgets(t *testing.T) {
	var book conversation.Book
	book.Observe(request{lines: "user go\n", tools: true})
	for i := range 3 * conversation.MaxThreads {
		turn := book.Observe(request{lines: fmt.Sprintf("user title %d\n", i)})
		if turn.Kind != conversation.KindSide || turn.Number != 1 {
			t.Fatalf("side call %d is %+v", i, turn)
		}
		if len(book.Threads) > conversation.MaxThreads {
			t.Fatalf("%d threads are remembered", len(book.Threads))
		}
	}
	turn := book.Observe(request{lines: "user go\ncall a\nresult a b\n", tools: true})
	if turn.Thread != 1 || turn.Number != 2 || len(turn.Steps) != 1 {
		t.Errorf("the main one is %+v", turn)
	}
	turn = book.Observe(request{lines: fmt.Sprintf("user title %d\n", 3*conversation.MaxThreads-1)})
	if !turn.Again {
		t.Errorf("the last side call is not known: %+v", turn)
	}
}

// TestBookOfLargeHistories: where more bytes were said than are remembered, messages are known by their digests.
func TestBookOfLargeHistories(t *testing.T) {
	var book conversation.Book
	lines := "user go\n"
	for i := range 4 {
		lines += fmt.Sprintf("call c%d\nresult c%d %s\n", i, i, strings.Repeat("x", conversation.MaxHistory/3))
		turn := book.Observe(request{lines: lines, tools: true})
		if turn.Thread != 1 || turn.Number != i+1 || turn.Compacted || len(turn.Steps) != 1 {
			t.Errorf("turn %d: thread %d, number %d, compacted %v, %d steps", i+1, turn.Thread, turn.Number, turn.Compacted, len(turn.Steps))
		}
	}
	turn := book.Observe(request{lines: lines, tools: true})
	if !turn.Again {
		t.Errorf("the same again: %+v", turn)
	}
}

// TestBookOfMessagesOfTheSystemAlone: requests that have nothing in common but what the system says are different threads.
func TestBookOfMessagesOfTheSystemAlone(t *testing.T) {
	var book conversation.Book
	for i := range 3 {
		turn := book.Observe(system{request{lines: fmt.Sprintf("system be kind\nuser number %d\n", i)}})
		if turn.Thread != i+1 {
			t.Errorf("request %d is of thread %d", i, turn.Thread)
		}
	}
}

// system reads the first entry as one of the system's.
type system struct{ request }

func (s system) Message(entry []byte) conversation.Message {
	m := s.request.Message(entry)
	if bytes.HasPrefix(entry, []byte("system ")) {
		m.Role = conversation.RoleSystem
	}
	return m
}

// TestAgentsThatAreToldTheSameFirst: two agents that begin with the same words are two threads, even before the first one is answered.
func TestAgentsThatAreToldTheSameFirst(t *testing.T) {
	for _, answered := range []bool{false, true} {
		var book conversation.Book
		for i := range 3 {
			turn := book.Observe(request{lines: fmt.Sprintf("user here is the folder\nuser do part %d\n", i), tools: true})
			if turn.Thread != i+1 || turn.Number != 1 {
				t.Errorf("agent %d: %+v", i, turn)
			}
			if answered {
				book.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{Name: "run"}}})
			}
		}
		turn := book.Observe(request{lines: "user here is the folder\nuser do part 1\ncall a\nresult a b\n", tools: true})
		if turn.Thread != 2 || turn.Number != 2 || turn.Compacted {
			t.Errorf("the second one goes on: %+v", turn)
		}
	}
}

// TestAMainThreadThatBeginsAsAnAgentDid: a client that puts the time before its first message leaves it out once, and then the main conversation begins as that of
// an agent that works for it. It has the results of the main one's calls.
func TestAMainThreadThatBeginsAsAnAgentDid(t *testing.T) {
	var book conversation.Book
	ask := func(first, rest, call string) conversation.Turn {
		turn := book.Observe(request{lines: "user " + first + "here is the folder\nuser do it\n" + rest, tools: true})
		book.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{ID: call, Name: "run"}}})
		return turn
	}
	ask("it is nine, ", "", "a")
	ask("it is ten, ", "call a\nresult a fine\n", "b")
	sub := ask("", "user you work for another\ncall x\nresult x fine\n", "y")
	got := ask("", "call a\nresult a fine\ncall b\nresult b fine\n", "c")
	if got.Thread != 1 || got.Number != 3 || got.Compacted || sub.Thread != 2 {
		t.Errorf("the main conversation is %+v, after that of an agent, %+v", got, sub)
	}
}

// TestFailureOf: what clients say where a tool fails, and what looks like it.
func TestFailureOf(t *testing.T) {
	for text, want := range map[string]conversation.Failure{
		"Exit code 2\nmake: *** [test] Error 1":                                                                                 conversation.FailureExit,
		"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nerror: none":                                 conversation.FailureNone,
		"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nx":                                           conversation.FailureExit,
		"Chunk ID: 1\nWall time: 9.1 seconds\nProcess exited with code 124\nOutput:\nx":                                         conversation.FailureTime,
		"Exit code 127\n/bin/bash: line 1: tokei: command not found":                                                            conversation.FailureMissing,
		"<tool_use_error>File has not been read yet.</tool_use_error>":                                                          conversation.FailureEdit,
		"<tool_use_error>InputValidationError: Edit failed</tool_use_error>":                                                    conversation.FailureFormat,
		"Could not find oldString in the file. It must match exactly.":                                                          conversation.FailureEdit,
		"Found multiple matches for oldString. Provide more context.":                                                           conversation.FailureEdit,
		"The arguments provided to the tool are invalid: Invalid input":                                                         conversation.FailureFormat,
		"File not found: /workspace/a.go":                                                                                       conversation.FailureMissing,
		"exec_command failed for `x`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }":                        conversation.FailureDenied,
		"apply_patch verification failed: Failed to find expected lines in /workspace/a.go":                                     conversation.FailureEdit,
		"patch rejected: writing outside of the project; rejected by user approval settings":                                    conversation.FailureDenied,
		"The user rejected permission to use this specific tool call.":                                                          conversation.FailureDenied,
		"     1→package errors\n     2→// file not found":                                                                       conversation.FailureNone,
		"<file>\n00001| Error: no\n</file>":                                                                                     conversation.FailureNone,
		"ENOSPC: no space left on device, write":                                                                                conversation.FailureTool,
		"cat: web/missing.html: No such file or directory":                                                                      conversation.FailureMissing,
		"ls: cannot open directory '/root': Permission denied":                                                                  conversation.FailureDenied,
		"grep: web: Is a directory":                                                                                             conversation.FailureTool,
		"cat: a tame animal":                                                                                                    conversation.FailureNone,
		"/bin/bash: line 1: tokei: command not found":                                                                           conversation.FailureMissing,
		"fatal: not a git repository":                                                                                           conversation.FailureTool,
		"=== RUN TestA\n\n<bash_metadata>\nbash tool terminated command after exceeding timeout 120000 ms\n</bash_metadata>":    conversation.FailureTime,
		"--- FAIL: TestA (0.0s)\nFAIL\tshop\t0.1s\nmake: *** [test] Error 1\n":                                                  conversation.FailureExit,
		"FAIL\tshop/a\t0.1s\nFAIL\n":                                                                                            conversation.FailureExit,
		"===== 2 failed, 3 passed in 0.1s =====":                                                                                conversation.FailureExit,
		"Chunk ID: 1\nProcess exited with code 0\nOutput:\nmake: *** [a] Error 1\n":                                             conversation.FailureNone,
		"where it fails it says:\nmake: *** [a] Error 1\nand then ok":                                                           conversation.FailureNone,
		"Command: a\nDirectory: (root)\nOutput: x\nError: (none)\nExit Code: 1\nSignal: (none)\nProcess Group PGID: (none)":     conversation.FailureExit,
		"Command: a\nDirectory: (root)\nOutput: FAIL\nError: (none)\nExit Code: 0\nSignal: (none)":                              conversation.FailureNone,
		"This \"run_shell_command\" invocation was denied by permission rules. Matching deny rule: \"edit\".":                   conversation.FailureDenied,
		"Command timed out after 120000ms before it could complete. Below is the output before it timed out:\nok":               conversation.FailureTime,
		"Tool \"shell\" not found in registry. Tools must use the exact names that are registered. Did you mean \"run_shell\"?": conversation.FailureMissing,
		"File /workspace/a.go has not been read in this session. Use the read_file tool first to read its current content.":     conversation.FailureEdit,
		"Failed to edit, 0 occurrences found for old_string in /workspace/a.go. No edits made.":                                 conversation.FailureEdit,
		"params must have required property 'file_path'":                                                                        conversation.FailureFormat,
		// What the SDKs of MCP say of a server that is gone.
		"MCP error -32000: Connection closed":                conversation.FailureTool,
		"MCP error -32001: Request timed out":                conversation.FailureTime,
		"MCP error -32602: Invalid arguments for tool query": conversation.FailureFormat,
		"spawn npx ENOENT":                                   conversation.FailureTool,
		"Not connected":                                      conversation.FailureTool,
		"not connected components are listed first":          conversation.FailureNone,
		"spawn points of the map":                            conversation.FailureNone,
		"MCP errors and what they mean":                      conversation.FailureNone,
		// How builds end, for a client that says no exit code.
		"[INFO] BUILD FAILURE\n[INFO] Total time: 1 s\n[ERROR] Failed to execute goal a:b:test\n":   conversation.FailureExit,
		"[ERROR] one\n[INFO] BUILD SUCCESS\n":                                                       conversation.FailureNone,
		"Still creating...\n\nError: creating MSK Cluster (queue): a limit":                         conversation.FailureExit,
		"Still creating...\n│\n│ Error: creating\n│ \n│   with aws.a,\n│   on main.tf line 3:\n╵\n": conversation.FailureExit,
		"loading\nError: Cannot find module 'a'\n    at load (a.js:1)\n    at b\n":                  conversation.FailureExit,
		"it once said\nError: no\nand went on":                                                      conversation.FailureNone,
		"FAIL\nmake: *** [Makefile:12: test] Error 1\n2\n":                                          conversation.FailureExit,
		"FAIL\nmake: *** [Makefile:12: test] Error 1\nexit: 2\n":                                    conversation.FailureExit,
		"FAIL\n0\n": conversation.FailureNone,
		"ok":        conversation.FailureNone,
		"":          conversation.FailureNone,
	} {
		if got := conversation.FailureOf(conversation.Result{Text: conversation.QuoteOf(text)}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
