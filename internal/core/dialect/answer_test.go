// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// events are a stream of server-sent events with these data.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "event: x\ndata: %s\n\n", d)
	}
	return b.String()
}

type reading struct {
	dialect  string
	streamed bool
	body     string
	want     conversation.Answer
}

// readings have the structure of what the providers send.
func readings() map[string]reading {
	text := func(s string) []byte { return []byte(s) }
	return map[string]reading{
		"Anthropic, streamed": {"anthropic", true, events(
			`{"type":"message_start","message":{"id":"m1","model":"large-1","usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"ping"}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" around."}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":42}}`,
			`{"type":"message_stop"}`,
		), conversation.Answer{
			Model: "large-1", Stop: conversation.StopTools, Text: text("I look around."), Ended: true, Counted: true, Acts: true,
			Tools: []conversation.Tool{{ID: "t1", Name: "Bash", Arguments: text(`{"command":"ls"}`)}}, Usage: conversation.Usage{Input: 10, Writes: 5, Cached: 100, Output: 42},
		}},
		"Anthropic, whole": {"anthropic", false, `{"type":"message","model":"large-1","content":[{"type":"text","text":"Done."},{"type":"tool_use","id":"t1","name":"Read","input":{"path":"a"}}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}`,
			conversation.Answer{
				Model: "large-1", Stop: conversation.StopEnd, Text: text("Done."), Ended: true, Counted: true, Acts: true,
				Tools: []conversation.Tool{{ID: "t1", Name: "Read", Arguments: text(`{"path":"a"}`)}}, Usage: conversation.Usage{Input: 3, Output: 4},
			}},
		"Anthropic, broken": {"anthropic", true, events(`{"type":"message_start","message":{"model":"large-1"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`),
			conversation.Answer{Model: "large-1", Failure: "busy"}},
		"Responses, streamed": {"openai-responses", true, events(
			`{"type":"response.created","response":{"id":"r1","model":"gpt-x"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`,
			`{"type":"response.output_text.delta","output_index":0,"delta":"I look"}`,
			`{"type":"response.output_text.delta","output_index":0,"delta":" around."}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"I look around."}]}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c1","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`,
			`{"type":"response.completed","response":{"object":"response","model":"gpt-x","status":"completed","output":[],"usage":{"input_tokens":110,"input_tokens_details":{"cached_tokens":100},"output_tokens":7}}}`,
		), conversation.Answer{
			Model: "gpt-x", Stop: conversation.StopTools, Text: text("I look around."), Ended: true, Counted: true, Acts: true,
			Tools: []conversation.Tool{{ID: "c1", Name: "exec_command", Arguments: text(`{"cmd":"ls"}`)}}, Usage: conversation.Usage{Input: 10, Cached: 100, Output: 7},
		}},
		"Responses, items alone": {"openai-responses", true, events(
			`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Done."}]}}`,
			`{"type":"response.incomplete","response":{"model":"gpt-x","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`,
		), conversation.Answer{Model: "gpt-x", Stop: conversation.StopLength, Text: text("Done."), Ended: true}},
		"Responses, whole": {"openai-responses", false, `{"object":"response","model":"gpt-x","status":"completed","output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"Done."}]}],"usage":{"input_tokens":1,"output_tokens":2}}`,
			conversation.Answer{Model: "gpt-x", Stop: conversation.StopEnd, Text: text("Done."), Ended: true, Counted: true, Usage: conversation.Usage{Input: 1, Output: 2}}},
		"Responses, failed": {"openai-responses", true, events(`{"type":"response.failed","response":{"model":"gpt-x","status":"failed","error":{"message":"no"}}}`),
			conversation.Answer{Model: "gpt-x", Failure: "no"}},
		"Chat, streamed": {"openai-chat", true, events(
			`{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"I look"}}]}`,
			`{"model":"m","choices":[{"index":1,"delta":{"content":"another choice"}},{"index":0,"delta":{"content":" around."}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"bash","arguments":""}}]}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"c\":"}},{"index":1,"id":"c2","function":{"name":"read","arguments":"{}"}}]}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"model":"m","choices":[],"usage":{"prompt_tokens":30,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens":5}}`,
			`[DONE]`,
		), conversation.Answer{
			Model: "m", Stop: conversation.StopTools, Text: text("I look around."), Ended: true, Counted: true, Acts: true, Cut: true,
			Tools: []conversation.Tool{{ID: "c1", Name: "bash", Arguments: text(`{"c":1}`)}, {ID: "c2", Name: "read", Arguments: text(`{}`)}},
			Usage: conversation.Usage{Input: 10, Cached: 20, Output: 5},
		}},
		"Chat, whole": {"openai-chat", false, `{"model":"m","choices":[{"index":0,"message":{"content":"Done.","tool_calls":[{"id":"c1","function":{"name":"bash","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`,
			conversation.Answer{
				Model: "m", Stop: conversation.StopEnd, Text: text("Done."), Ended: true, Counted: true, Acts: true,
				Tools: []conversation.Tool{{ID: "c1", Name: "bash", Arguments: text(`{}`)}}, Usage: conversation.Usage{Input: 3, Output: 4},
			}},
		"Gemini, streamed": {"gemini", true, events(
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":115,"cachedContentTokenCount":100,"thoughtsTokenCount":30},"modelVersion":"large-1","responseId":"r"}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"I look"}]}}]}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":" around."}]},"index":0},{"content":{"parts":[{"text":"Or not."}]},"index":1}]}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"t1","name":"shell","args":{"command":"ls"}},"thoughtSignature":"cw=="},{"functionCall":{"name":"shell","args":{}}},{"functionCall":{"name":"shell"}}]}}]}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"","thoughtSignature":"cw=="}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":115,"cachedContentTokenCount":100,"toolUsePromptTokenCount":5,"candidatesTokenCount":12,"thoughtsTokenCount":30,"totalTokenCount":162}}`,
		), conversation.Answer{
			Model: "large-1", Stop: conversation.StopTools, Text: text("I look around."), Ended: true, Counted: true, Acts: true, Cut: true, Usage: conversation.Usage{Input: 20, Cached: 100, Output: 42},
			Tools: []conversation.Tool{{ID: "t1", Name: "shell", Arguments: text(`{"command":"ls"}`)}, {ID: "shell#0", Name: "shell", Arguments: text(`{}`)}, {ID: "shell#1", Name: "shell"}},
		}},
		"Gemini, whole": {"gemini", false, `{"candidates":[{"content":{"parts":{"text":"Done."},"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}`,
			conversation.Answer{Stop: conversation.StopEnd, Text: text("Done."), Ended: true, Counted: true, Usage: conversation.Usage{Input: 3, Output: 4}}},
		"Gemini, no more room":       {"gemini", false, `{"candidates":[{"content":{"parts":[7,{"text":"Do"}]},"finishReason":"MAX_TOKENS"}]}`, conversation.Answer{Stop: conversation.StopLength, Text: text("Do"), Ended: true}},
		"Gemini, stopped for safety": {"gemini", false, `{"candidates":[{"finishReason":"SAFETY"}]}`, conversation.Answer{Stop: conversation.StopOther, Ended: true}},
		"Gemini, blocked":            {"gemini", false, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`, conversation.Answer{Stop: conversation.StopOther, Ended: true}},
		"Gemini, broken":             {"gemini", true, events(`{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`), conversation.Answer{Failure: "busy"}},
		"Gemini, a list":             {"gemini", false, `[{"candidates":[{"finishReason":"STOP"}]}]`, conversation.Answer{}},
		"Chat, broken":               {"openai-chat", true, events(`{"error":{"message":"busy"}}`), conversation.Answer{Failure: "busy"}},
	}
}

func read(r reading, chunk int) *conversation.Answer {
	d, _ := dialect.Find(r.dialect)
	in := conversation.NewReader(d.Answer(), r.streamed)
	for body := []byte(r.body); len(body) > 0; {
		n := min(chunk, len(body))
		in.Write(body[:n])
		body = body[n:]
	}
	return in.Close()
}

// TestAnswers: every dialect is read into the same view, wherever its bytes are cut.
func TestAnswers(t *testing.T) {
	for name, r := range readings() {
		for _, chunk := range []int{1, 7, 1 << 20} {
			if diff := cmp.Diff(&r.want, read(r, chunk), cmpopts.IgnoreUnexported(conversation.Answer{})); diff != "" {
				t.Errorf("%s, %d bytes at a time (-want +got):\n%s", name, chunk, diff)
			}
		}
		if r.streamed {
			r.body = strings.ReplaceAll(r.body, "\n", "\r\n")
			if diff := cmp.Diff(&r.want, read(r, 3), cmpopts.IgnoreUnexported(conversation.Answer{})); diff != "" {
				t.Errorf("%s, with carriage returns (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestAnswersAreBounded: what is too much is left out, and the rest is read.
func TestAnswersAreBounded(t *testing.T) {
	huge := strings.Repeat("x", 5<<20)
	many := strings.Repeat(`{"type":"tool_use","id":"t","name":"n","input":{}},`, 1000)
	long := strings.Repeat("y", conversation.MaxArguments+10)
	for name, tc := range map[string]struct {
		r     reading
		check func(*conversation.Answer) bool
	}{
		"an event": {reading{dialect: "anthropic", streamed: true, body: events(
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"`+huge+`"}}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"after"}}`)},
			func(a *conversation.Answer) bool { return string(a.Text) == "after" }},
		"an event of many lines": {reading{dialect: "anthropic", streamed: true, body: "data: " + strings.Repeat(huge[:1<<20]+"\ndata: ", 6) + "\n\n" + events(`{"type":"message_stop"}`)},
			func(a *conversation.Answer) bool { return a.Ended && len(a.Text) == 0 }},
		"a whole answer": {reading{dialect: "anthropic", body: `{"type":"message","content":[{"type":"text","text":"` + huge + huge + `"}]}`},
			func(a *conversation.Answer) bool { return !a.Ended && len(a.Text) == 0 }},
		"a text": {reading{dialect: "anthropic", body: `{"type":"message","content":[{"type":"text","text":"` + huge[:2<<20] + `"}]}`},
			func(a *conversation.Answer) bool { return len(a.Text) == conversation.MaxText }},
		"tools": {reading{dialect: "anthropic", body: `{"type":"message","content":[` + strings.TrimSuffix(many, ",") + `]}`},
			func(a *conversation.Answer) bool { return len(a.Tools) == conversation.MaxTools }},
		"arguments": {reading{dialect: "openai-chat", streamed: true, body: events(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"n","arguments":"` + long + `"}}]}}]}`)},
			func(a *conversation.Answer) bool { return len(a.Tools[0].Arguments) == conversation.MaxArguments }},
	} {
		if a := read(tc.r, 64<<10); !a.Cut || !tc.check(a) {
			t.Errorf("%s: cut %v, ended %v, %d bytes of text, %d tools", name, a.Cut, a.Ended, len(a.Text), len(a.Tools))
		}
	}
}

// FuzzAnswer: nothing that a provider sends is more than is bounded, or depends on how it is cut.
func FuzzAnswer(f *testing.F) {
	for _, r := range readings() {
		f.Add([]byte(r.body), r.streamed, 5)
	}
	f.Fuzz(func(t *testing.T, body []byte, streamed bool, chunk int) {
		chunk = 1 + (chunk&0xffff)%64
		for _, d := range dialect.All() {
			r := reading{dialect: d.Name, streamed: streamed, body: string(body)}
			whole, cut := read(r, len(body)+1), read(r, chunk)
			if diff := cmp.Diff(whole, cut, cmpopts.IgnoreUnexported(conversation.Answer{})); diff != "" {
				t.Fatalf("%s: %d bytes at a time (-whole +cut):\n%s", d.Name, chunk, diff)
			}
			size := len(whole.Text)
			for _, tool := range whole.Tools {
				size += len(tool.Arguments)
			}
			if size > 8*len(body) {
				t.Fatalf("%s: %d bytes became %d", d.Name, len(body), size)
			}
		}
	})
}
