// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

const anew = "A \"new\"\ntext.\u2028"

// TestRetext: the text of an answer is replaced, in the dialect's own form, and nothing else is.
func TestRetext(t *testing.T) {
	in := `"A \"new\"\ntext.` + "\u2028" + `"`
	for name, tc := range map[string]struct {
		dialect    string
		streamed   bool
		body, want string
	}{
		"Anthropic, streamed": {"anthropic", true, ": a comment\n\n" + events(
			`{"type":"message_start","message":{"id":"m1","model":"large-1","odd":[1, 2]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"I"}}`,
			`{"type":"ping"}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" say"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" so."}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"More"}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"s1"}}`,
			`{"type":"content_block_stop","index":3}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}`,
			`{"type":"message_stop"}`,
		), ": a comment\n\n" + events(
			`{"type":"message_start","message":{"id":"m1","model":"large-1","odd":[1, 2]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"ping"}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		) + "event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":` + in + "}}\n\n" + events(
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s1"}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}`,
			`{"type":"message_stop"}`,
		)},
		"Anthropic, whole": {"anthropic", false, `{"type":"message", "model":"l","content":[{"type":"thinking","thinking":"t","signature":"s"}, {"type":"text","text":"Done"},{"type":"text","text":".","citations":[{"x":1}]}],"stop_reason":"end_turn","usage":{"output_tokens":4}}`,
			`{"type":"message", "model":"l","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":` + in + `,"citations":null}],"stop_reason":"end_turn","usage":{"output_tokens":4}}`},
		"Responses, streamed": {"openai-responses", true, events(
			`{"type":"response.created","response":{"id":"r1","model":"gpt-x"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","encrypted_content":"e"}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","content":[]}}`,
			`{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}`,
			`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"I say"}`,
			`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":" so."}`,
			`{"type":"response.output_text.annotation.added","output_index":1,"content_index":0,"annotation":{"start_index":2}}`,
			`{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"I say so."}`,
			`{"type":"response.content_part.done","output_index":1,"content_index":0,"part":{"type":"output_text","text":"I say so.","annotations":[{"start_index":2}]}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"I say so."}]}}`,
			`{"type":"response.completed","response":{"object":"response","model":"gpt-x","status":"completed","output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"I say so."}]}],"usage":{"output_tokens":7}}}`,
		), events(
			`{"type":"response.created","response":{"id":"r1","model":"gpt-x"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","encrypted_content":"e"}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","content":[]}}`,
			`{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}`,
			`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":`+in+`}`,
			`{"type":"response.output_text.done","output_index":1,"content_index":0,"text":`+in+`}`,
			`{"type":"response.content_part.done","output_index":1,"content_index":0,"part":{"type":"output_text","text":`+in+`,"annotations":[]}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":`+in+`}]}}`,
			`{"type":"response.completed","response":{"object":"response","model":"gpt-x","status":"completed","output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":`+in+`}]}],"usage":{"output_tokens":7}}}`,
		)},
		"Responses, two parts": {"openai-responses", false, `{"object":"response","model":"x","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},{"type":"message","content":[{"type":"output_text","text":"c"}]}]}`,
			`{"object":"response","model":"x","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":""},{"type":"output_text","text":""}]},{"type":"message","content":[{"type":"output_text","text":` + in + `}]}]}`},
		"Chat, streamed": {"openai-chat", true, events(
			`{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{"content":"I say"}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{"content":" so."}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`,
		), events(
			`{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{"content":`+in+`}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{"content":""}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`,
		)},
		"Chat, lines and logprobs": {"openai-chat", true, "data: {\"model\":\"m\",\ndata: \"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"logprobs\":{\"content\":[1]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]",
			"data: {\"model\":\"m\",\ndata: \"choices\":[{\"index\":0,\"delta\":{\"content\":" + in + "},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"},
		"Gemini, streamed": {"gemini", true, events(
			`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"I"}],"role":"model"},"index":0}],"modelVersion":"m"}`,
			`{"candidates":[{"content":{"parts":[{"text":" say"}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"so.","thoughtSignature":"cw=="}]},"citationMetadata":{"a":1},"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":4}}`,
		), events(
			`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":`+in+`}],"role":"model"},"index":0}],"modelVersion":"m"}`,
			`{"candidates":[{"content":{"parts":[{"text":""}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]},"citationMetadata":null,"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":4}}`,
		)},
		"Gemini, whole": {"gemini", false, `{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"},{"inlineData":{}}]},"finishReason":"STOP"}]}`,
			`{"candidates":[{"content":{"parts":[{"text":` + in + `},{"inlineData":{}}]},"finishReason":"STOP"}]}`},
		"Chat, whole": {"openai-chat", false, `{"model":"m","choices":[{"index":0,"message":{"content":"Done.","x":[]},"finish_reason":"stop"}]}`,
			`{"model":"m","choices":[{"index":0,"message":{"content":` + in + `,"x":[]},"finish_reason":"stop"}]}`},
	} {
		got, err := find(tc.dialect).Retext([]byte(tc.body), tc.streamed, anew)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(strings.Split(tc.want, "\n"), strings.Split(string(got), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRetextRefuses what it does not know: an answer of which people would get what was not checked.
func TestRetextRefuses(t *testing.T) {
	for name, r := range map[string]reading{
		"no text":             {dialect: "anthropic", body: `{"type":"message","content":[],"stop_reason":"end_turn"}`},
		"no JSON":             {dialect: "openai-chat", body: `{`},
		"a delta of no block": {dialect: "anthropic", streamed: true, body: events(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"x"}}`)},
	} {
		if got, err := find(r.dialect).Retext([]byte(r.body), r.streamed, anew); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestRetextIsLinear: twice as much takes about twice as long, whatever it is made of.
func TestRetextIsLinear(t *testing.T) {
	whole := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(events(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":"x"}}`, i)))
		}
		return b.String() + events(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)
	}
	name := func(n int) string {
		return `{"model":"m","` + strings.Repeat("n", 10*n) + `":[` + strings.Repeat("[0],", 10*n) + `0],"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`
	}
	const much = 20_000
	for kind, r := range map[string]reading{
		"blocks": {dialect: "anthropic", streamed: true, body: whole(much)}, "a name": {dialect: "openai-chat", body: name(much)},
	} {
		began := time.Now()
		if _, err := find(r.dialect).Retext([]byte(r.body), r.streamed, anew); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if took := time.Since(began); took > time.Minute { // what is quadratic takes much longer
			t.Errorf("%s: %s", kind, took)
		}
	}
}

// FuzzRetext: what comes out says the new text, or nothing comes out.
func FuzzRetext(f *testing.F) {
	for _, r := range readings() {
		f.Add([]byte(r.body), r.streamed, "new")
	}
	f.Fuzz(func(t *testing.T, body []byte, streamed bool, text string) {
		if strings.ToValidUTF8(text, "") != text {
			return
		}
		for _, d := range dialect.All() {
			now, err := d.Retext(body, streamed, text)
			if err != nil {
				continue
			}
			in := conversation.NewReader(d.Answer(), streamed)
			in.Write(now)
			if a := in.Close(); string(a.Text) != text {
				t.Fatalf("%s: %q became %q: %q", d.Name, body, now, a.Text)
			}
		}
	})
}
