// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// speech of a dialect.
func speech(t *testing.T, name string) Speech {
	t.Helper()
	s, found := Find(name)
	if !found {
		t.Fatalf("the dialect %s is not spoken", name)
	}
	return s
}

// TestEveryDialectIsSpoken: whatever a backend speaks, the worker does; and nothing else.
func TestEveryDialectIsSpoken(t *testing.T) {
	paths := map[string]string{"anthropic": "/anthropic/v1/messages", "openai-responses": "/openai/v1/responses", "openai-chat": "/openai/v1/chat/completions", "gemini": "/gemini/v1beta/models/primary:streamGenerateContent?alt=sse"}
	for _, d := range dialect.All() {
		if got := speech(t, d.Name).Path(); got != paths[d.Name] {
			t.Errorf("%s: %s, want %s", d.Name, got, paths[d.Name])
		}
	}
	if len(speeches()) != len(dialect.All()) {
		t.Error("a dialect is spoken that there is not")
	}
	if _, found := Find("latin"); found {
		t.Error("latin is spoken")
	}
}

// talk is a conversation with everything in it.
func talk() Request {
	return Request{
		System: "Be brief.", MaxOutput: 100,
		Tools: []Tool{
			{"context", "What to do.", json.RawMessage(`{"type":"object","additionalProperties":false}`)},
			{"patch", "Change files.", json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"]}`)},
			{"odd", "No schema.", json.RawMessage(`null`)},
		},
		Messages: []Message{
			{Text: "Add a page."},
			{Model: true, Text: "I look.", Calls: []Call{{ID: "1", Name: "context", Arguments: json.RawMessage(`{}`)}, {ID: "2", Name: "patch", Arguments: json.RawMessage(`{"patch":"x"}`)}}},
			{Results: []Result{{ID: "1", Text: "all"}, {ID: "2", Text: "no such file", Failed: true}}},
			{Model: true, Text: "Hm."},
			{Text: "Go on."},
		},
	}
}

const (
	chatTools = `[{"type":"function","function":{"name":"context","description":"What to do.","parameters":{"type":"object","additionalProperties":false,"properties":{}}}},
		{"type":"function","function":{"name":"patch","description":"Change files.","parameters":{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"]}}},
		{"type":"function","function":{"name":"odd","description":"No schema.","parameters":{"type":"object","properties":{}}}}]`
	responsesTools = `[{"type":"function","name":"context","description":"What to do.","parameters":{"type":"object","additionalProperties":false,"properties":{}},"strict":false},
		{"type":"function","name":"patch","description":"Change files.","parameters":{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"]},"strict":false},
		{"type":"function","name":"odd","description":"No schema.","parameters":{"type":"object","properties":{}},"strict":false}]`
	geminiTools = `[{"name":"context","description":"What to do.","parametersJsonSchema":{"type":"object","additionalProperties":false,"properties":{}}},
		{"name":"patch","description":"Change files.","parametersJsonSchema":{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"]}},
		{"name":"odd","description":"No schema.","parametersJsonSchema":{"type":"object","properties":{}}}]`
	anthropicTools = `[{"name":"context","description":"What to do.","input_schema":{"type":"object","additionalProperties":false,"properties":{}}},
		{"name":"patch","description":"Change files.","input_schema":{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"]}},
		{"name":"odd","description":"No schema.","input_schema":{"type":"object","properties":{}}}]`
)

// TestRequests: one conversation, as each provider documents it.
func TestRequests(t *testing.T) {
	for name, want := range map[string]string{
		"anthropic": `{"model":"primary","max_tokens":100,"stream":true,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"tools":` + anthropicTools + `,"messages":[
			{"role":"user","content":[{"type":"text","text":"Add a page."}]},
			{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"1","name":"context","input":{}},{"type":"tool_use","id":"2","name":"patch","input":{"patch":"x"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"all"},{"type":"tool_result","tool_use_id":"2","content":"no such file","is_error":true}]},
			{"role":"assistant","content":[{"type":"text","text":"Hm."}]},
			{"role":"user","content":[{"type":"text","text":"Go on.","cache_control":{"type":"ephemeral"}}]}]}`,
		"openai-responses": `{"model":"primary","stream":true,"store":false,"instructions":"Be brief.","tools":` + responsesTools + `,"input":[
			{"type":"message","role":"user","content":[{"type":"input_text","text":"Add a page."}]},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
			{"type":"function_call","call_id":"1","name":"context","arguments":"{}"},{"type":"function_call","call_id":"2","name":"patch","arguments":"{\"patch\":\"x\"}"},
			{"type":"function_call_output","call_id":"1","output":"all"},{"type":"function_call_output","call_id":"2","output":"Error: no such file"},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hm."}]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}]}`,
		"openai-chat": `{"model":"primary","stream":true,"stream_options":{"include_usage":true},"tools":` + chatTools + `,"messages":[
			{"role":"system","content":"Be brief."},{"role":"user","content":"Add a page."},
			{"role":"assistant","content":"I look.","tool_calls":[{"id":"1","type":"function","function":{"name":"context","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"patch","arguments":"{\"patch\":\"x\"}"}}]},
			{"role":"tool","content":"all","tool_call_id":"1"},{"role":"tool","content":"Error: no such file","tool_call_id":"2"},
			{"role":"assistant","content":"Hm."},{"role":"user","content":"Go on."}]}`,
		"gemini": `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":` + geminiTools + `}],"contents":[
			{"role":"user","parts":[{"text":"Add a page."}]},
			{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"1","name":"context","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"2","name":"patch","args":{"patch":"x"}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"1","name":"context","response":{"output":"all"}}},{"functionResponse":{"id":"2","name":"patch","response":{"error":"no such file"}}}]},
			{"role":"model","parts":[{"text":"Hm."}]},{"role":"user","parts":[{"text":"Go on."}]}]}`,
	} {
		body, err := speech(t, name).Body(talk())
		if diff := cmp.Diff(value(t, want), value(t, string(body))); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestAForcedTool: how each provider documents that the model has to call one tool.
func TestAForcedTool(t *testing.T) {
	for name, want := range map[string]string{
		"anthropic":        `"tool_choice":{"type":"tool","name":"patch"}`,
		"openai-responses": `"tool_choice":{"type":"function","name":"patch"}`,
		"openai-chat":      `"tool_choice":{"type":"function","function":{"name":"patch"}}`,
		"gemini":           `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["patch"]}}`,
	} {
		r := talk()
		r.Force = "patch"
		body, err := speech(t, name).Body(r)
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %v: %s does not have %s", name, err, body, want)
		}
	}
}

// TestTheLastResultIsMarked: what Anthropic keeps ends with the last message, whatever it is.
func TestTheLastResultIsMarked(t *testing.T) {
	r := talk()
	r.Messages = r.Messages[:3]
	body, err := speech(t, "anthropic").Body(r)
	if err != nil || !strings.HasSuffix(string(body), `"is_error":true,"cache_control":{"type":"ephemeral"}}]}]}`) {
		t.Errorf("%v: %s", err, body)
	}
}

// value of a JSON text.
func value(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// streamed is a stream of events with this data.
func streamed(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + strings.Join(strings.Fields(strings.ReplaceAll(d, "\n", " ")), " ") + "\n\n")
	}
	return b.String()
}

// answers in each dialect: what the model says, as it comes, and what goes back to it.
var answers = map[string]struct {
	dialect, body string
	whole         bool
	want          Answer
	// said is what goes back; empty where it is composed of the rest.
	said string
}{
	"anthropic with a thought": {
		dialect: "anthropic",
		body: streamed(`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" see."}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I look."}}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}}`,
			`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}`, `{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"a\"}"}}`,
			`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t2","name":"context","input":{}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`),
		want: Answer{Stop: conversation.StopTools, Usage: conversation.Usage{Input: 7, Cached: 3, Output: 9}, Counted: true, Ended: true, Message: Message{Text: "I look.", Calls: []Call{
			{ID: "t1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}, {ID: "t2", Name: "context", Arguments: json.RawMessage(`{}`)},
		}}},
		said: `[{"type":"thinking","thinking":"Let me see.","signature":"c2ln"},{"type":"redacted_thinking","data":"xyz"},{"type":"text","text":"I look."},
			{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"t2","name":"context","input":{}}]`,
	},
	"anthropic cut off in a call": {
		dialect: "anthropic",
		body: streamed(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":" "}}`, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"patch","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"patch\":\"dif"}}`, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, `{"type":"message_stop"}`),
		want: Answer{Stop: conversation.StopLength, Ended: true, Message: Message{Text: " ", Calls: []Call{{ID: "t1", Name: "patch", Arguments: json.RawMessage(`{}`), Broken: true}}}},
		said: `[{"type":"tool_use","id":"t1","name":"patch","input":{}}]`,
	},
	"anthropic as a whole": {
		dialect: "anthropic", whole: true,
		body: `{"type":"message","content":[{"type":"text","text":"One."},{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}}],"stop_reason":"tool_use","usage":{"input_tokens":4,"output_tokens":2}}`,
		want: Answer{Stop: conversation.StopTools, Usage: conversation.Usage{Input: 4, Output: 2}, Counted: true, Ended: true, Message: Message{Text: "One.", Calls: []Call{{ID: "t1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}}}},
		said: `[{"type":"text","text":"One."},{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}}]`,
	},
	"anthropic that fails for a moment": {
		dialect: "anthropic", body: streamed(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"error","error":{"type":"overloaded_error","message":"later"}}`),
		want: Answer{Failure: "later"},
	},
	"anthropic that refuses": {
		dialect: "anthropic", body: streamed(`{"type":"error","error":{"type":"invalid_request_error","message":"tidewaiter: breaks the rules"}}`),
		want: Answer{Failure: "tidewaiter: breaks the rules", Refused: true},
	},
	"responses": {
		dialect: "openai-responses",
		body: streamed(`{"type":"response.created","response":{"model":"m","status":"in_progress"}}`,
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}}`,
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"opaque"}}`,
			`{"type":"response.output_item.done","item":{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","status":"completed","call_id":"c1","name":"read","arguments":"{\"path\":\"a\"}"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_2","call_id":"c2","name":"patch","arguments":"{\"pa"}}`,
			`{"type":"response.output_item.done","item":{"type":"web_search_call","id":"ws_1"}}`,
			`{"type":"response.completed","response":{"model":"m","status":"completed","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5}}}`),
		want: Answer{Stop: conversation.StopTools, Usage: conversation.Usage{Input: 6, Cached: 4, Output: 5, Uses: conversation.Uses{Searches: 1}}, Counted: true, Ended: true, Message: Message{Text: "I look.", Calls: []Call{
			{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}, {ID: "c2", Name: "patch", Arguments: json.RawMessage(`{}`), Broken: true},
		}}},
		said: `[{"type":"reasoning","summary":[],"encrypted_content":"opaque"},{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]},
			{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"path\":\"a\"}"},{"type":"function_call","call_id":"c2","name":"patch","arguments":"{}"}]`,
	},
	"responses as a whole": {
		dialect: "openai-responses", whole: true,
		body: `{"object":"response","status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{}"}]}`,
		want: Answer{Stop: conversation.StopTools, Ended: true, Message: Message{Calls: []Call{{ID: "c1", Name: "read", Arguments: json.RawMessage(`{}`)}}}},
		said: `[{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"}]`,
	},
	"responses that refuse": {
		dialect: "openai-responses", body: streamed(`{"type":"response.failed","response":{"object":"response","status":"failed","error":{"code":"invalid_prompt","message":"no"}}}`),
		want: Answer{Stop: conversation.StopNone, Failure: "no", Refused: true},
	},
	"chat with a thought and a signature": {
		dialect: "openai-chat",
		body: streamed(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null,"reasoning_content":"Let me"}}]}`, `{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":" see."}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"I "}}]}`, `{"choices":[{"index":0,"delta":{"content":"look.","reasoning_details":[{"text":"a"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"text":"b"}],"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":""},"extra_content":{"google":{"thought_signature":"sig"}}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\""}}]}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":":\"a\"}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"patch","arguments":"{\"pa"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, `[DONE]`),
		want: Answer{Stop: conversation.StopTools, Usage: conversation.Usage{Input: 10, Output: 5}, Counted: true, Ended: true, Message: Message{Text: "I look.", Calls: []Call{
			{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}, {ID: "c2", Name: "patch", Arguments: json.RawMessage(`{}`), Broken: true},
		}}},
		said: `{"role":"assistant","content":"I look.","reasoning_content":"Let me see.","reasoning_details":[{"text":"a"},{"text":"b"}],"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"},"extra_content":{"google":{"thought_signature":"sig"}}},
			{"id":"c2","type":"function","function":{"name":"patch","arguments":"{}"}}]}`,
	},
	"chat of a server that names no calls": {
		dialect: "openai-chat", whole: true,
		body: `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		want: Answer{Stop: conversation.StopTools, Ended: true, Message: Message{Calls: []Call{{Name: "read", Arguments: json.RawMessage(`{}`)}}}},
	},
	"chat that calls what no tool can be named, and half a character": {
		dialect: "openai-chat", whole: true,
		body: `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read file","arguments":"{\"path\":\"a\"}"}},
			{"id":"c2","type":"function","function":{"name":"read","arguments":"{\"path\":\"\\ud83d\"}"}}]},"finish_reason":"tool_calls"}]}`,
		want: Answer{Stop: conversation.StopTools, Ended: true, Message: Message{Calls: []Call{
			{ID: "c1", Name: "unknown", Arguments: json.RawMessage(`{}`), Broken: true}, {ID: "c2", Name: "read", Arguments: json.RawMessage("{\"path\":\"\ufffd\"}")},
		}}},
	},
	"chat that says nothing": {
		dialect: "openai-chat", body: streamed(`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}`, `[DONE]`),
		want: Answer{Stop: conversation.StopEnd, Ended: true},
	},
	"gemini with thoughts, signatures and calls without an ID": {
		dialect: "gemini",
		body: streamed(`{"candidates":[{"content":{"parts":[{"text":"Let me","thought":true}],"role":"model"}}]}`, `{"candidates":[{"content":{"parts":[{"text":" see.","thought":true}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"I "}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"look."}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c1","name":"read","args":{"path":"a"}},"thoughtSignature":"sig"},{"functionCall":{"name":"read","args":{}}}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2}}`),
		want: Answer{Stop: conversation.StopTools, Usage: conversation.Usage{Input: 10, Output: 5}, Counted: true, Ended: true, Message: Message{Text: "I look.", Calls: []Call{
			{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}, {ID: "read#0", Name: "read", Arguments: json.RawMessage(`{}`)},
		}}},
		said: `{"role":"model","parts":[{"text":"Let me see.","thought":true},{"text":"I look."},{"functionCall":{"id":"c1","name":"read","args":{"path":"a"}},"thoughtSignature":"sig"},{"functionCall":{"name":"read","args":{}}}]}`,
	},
	"gemini that refuses": {
		dialect: "gemini", whole: true, body: `{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`, want: Answer{Failure: "no", Refused: true},
	},
	"chat that refuses": {
		dialect: "openai-chat", body: streamed(`{"error":{"type":"invalid_request_error","message":"no"}}`), want: Answer{Failure: "no", Refused: true},
	},
}

// TestAnswers: what a model has said goes back to it in its own words, and what cannot be called is called nothing.
func TestAnswers(t *testing.T) {
	for name, tc := range answers {
		t.Run(name, func(t *testing.T) {
			l := speech(t, tc.dialect).Listen(!tc.whole)
			for piece := range slices.Chunk([]byte(tc.body), 7) {
				l.Write(piece)
			}
			got := l.Close()
			said := got.Message.Said
			got.Message.Said, tc.want.Message.Model = nil, true
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if tc.said == "" {
				if said != nil && !got.Message.Empty() {
					t.Errorf("said %s", said)
				}
				return
			}
			if diff := cmp.Diff(value(t, tc.said), value(t, string(said))); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}

// TestALongAnswer: of one that is longer than what is kept, text and calls go back.
func TestALongAnswer(t *testing.T) {
	for _, d := range dialect.All() {
		name := d.Name
		l := speech(t, name).Listen(true)
		text := strings.Repeat("x", 1<<20)
		for range 6 {
			l.Write([]byte(streamed(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"`+text+`"}}`,
				`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"`+text+`"}]}}`, `{"choices":[{"index":0,"delta":{"content":"`+text+`"}}]}`, `{"candidates":[{"content":{"parts":[{"text":"`+text+`"}]}}]}`)))
		}
		if a := l.Close(); a.Message.Said != nil || !a.Cut || len(a.Message.Text) != conversation.MaxText {
			t.Errorf("%s: %d bytes said, %d of text, cut %v", name, len(a.Message.Said), len(a.Message.Text), a.Cut)
		}
	}
}

// FuzzAnswers: whatever a provider sends, what goes back is JSON, and every call has a name to answer it by.
func FuzzAnswers(f *testing.F) {
	for _, tc := range answers {
		f.Add(uint8(slices.IndexFunc(dialect.All(), func(d dialect.Dialect) bool { return d.Name == tc.dialect })), tc.body, !tc.whole)
	}
	f.Fuzz(func(t *testing.T, which uint8, body string, streamed bool) {
		s := speech(t, dialect.All()[int(which)%len(dialect.All())].Name)
		l := s.Listen(streamed)
		l.Write([]byte(body))
		a := l.Close()
		answer := Message{Text: "Go on."}
		for i := range a.Message.Calls {
			c := &a.Message.Calls[i]
			if !object(c.Arguments) || !utf8.Valid(c.Arguments) || !toolName.MatchString(c.Name) {
				t.Errorf("call %+v", c)
			}
			if c.ID == "" {
				c.ID = strconv.Itoa(i)
			}
			answer.Results = append(answer.Results, Result{ID: c.ID, Text: "done"})
		}
		messages := []Message{{Text: "Do it."}}
		if !a.Message.Empty() {
			messages = append(messages, a.Message)
		}
		sent, err := s.Body(Request{Messages: append(messages, answer)})
		if err != nil || !json.Valid(sent) || len(sent) > 4*len(body)+10_000 {
			t.Errorf("%d bytes, %v: %.300s", len(sent), err, sent)
		}
	})
}
