// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// operated gives a request of which the repetitions have been left out, as a watchdog finds them. Each exchange calls two tools at once.
func operated(t *testing.T, name, head, tail string, exchange func(n int) string) []byte {
	t.Helper()
	d, _ := dialect.Find(name)
	var list []string
	for n := range 6 {
		list = append(list, exchange(n))
	}
	r, err := d.ReadRequest([]byte(head + strings.Join(list, ",") + tail))
	if err != nil {
		t.Fatal(err)
	}
	var book conversation.Book
	turn := book.Observe(r.Conversation())
	found := book.Repeats(r.Conversation(), turn.Ends, func(string) bool { return true })
	return r.Steer(dialect.Edits{Cuts: dialect.Cutting(nil, found.Spans), Notes: []dialect.Note{
		{After: found.Spans[0].From, Text: "[SUPERVISOR] Calls are left out here."}, {After: turn.Messages, Text: "[SUPERVISOR] Do something else."},
	}}, turn.Ends)
}

// TestSurgeryAnthropic: the roles still alternate, every call that is left has its result, and every thought its signature.
func TestSurgeryAnthropic(t *testing.T) {
	body := operated(t, "anthropic", `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"Work."},`, `],"tools":[{"name":"Read","input_schema":{"type":"object"}}]}`, func(n int) string {
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln%d"},{"type":"tool_use","id":"a%d","name":"Read","input":{}},{"type":"tool_use","id":"b%d","name":"Read","input":{}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a%d","content":"no","is_error":true},{"type":"tool_result","tool_use_id":"b%d","content":"no","is_error":true}]}`, n, n, n, n, n)
	})
	var p anthropic.MessageNewParams
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Messages) != 3 {
		t.Fatalf("%d messages: %s", len(p.Messages), body)
	}
	for i, m := range p.Messages {
		if want := []anthropic.MessageParamRole{"user", "assistant"}[i%2]; m.Role != want {
			t.Errorf("message %d is of %s", i, m.Role)
		}
	}
	thought, called, results := p.Messages[1].Content[0].OfThinking, p.Messages[1].Content[1].OfToolUse, p.Messages[2].Content
	if thought == nil || thought.Signature != "c2ln5" || called == nil || called.ID != "a5" || results[0].OfToolResult == nil || results[0].OfToolResult.ToolUseID != "a5" || results[2].OfText == nil {
		t.Errorf("%s", body)
	}
}

// TestSurgeryChat: what is left of calls and results belongs together.
func TestSurgeryChat(t *testing.T) {
	body := operated(t, "openai-chat", `{"model":"m","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Work."},`, `],"tools":[{"type":"function","function":{"name":"read"}}]}`, func(n int) string {
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"a%d","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"b%d","type":"function","function":{"name":"read","arguments":"{}"}}]},`+
			`{"role":"tool","tool_call_id":"a%d","content":"Error: no"},{"role":"tool","tool_call_id":"b%d","content":"Error: no"}`, n, n, n, n)
	})
	var p openai.ChatCompletionNewParams
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range p.Messages {
		if m.OfAssistant != nil {
			for _, c := range m.OfAssistant.ToolCalls {
				ids = append(ids, "call "+c.OfFunction.ID)
			}
		}
		if m.OfTool != nil {
			ids = append(ids, "result "+m.OfTool.ToolCallID)
		}
	}
	if want := []string{"call a5", "call b5", "result a5", "result b5"}; !slices.Equal(ids, want) || p.Messages[len(p.Messages)-1].OfUser == nil {
		t.Errorf("%q: %s", ids, body)
	}
}

// TestSurgeryResponses: thoughts go with their calls.
func TestSurgeryResponses(t *testing.T) {
	body := operated(t, "openai-responses", `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Work."}]},`, `],"tools":[{"type":"function","name":"shell","parameters":{},"strict":false}]}`, func(n int) string {
		return fmt.Sprintf(`{"type":"reasoning","id":"r%d","summary":[],"encrypted_content":"x"},{"type":"function_call","call_id":"a%d","name":"shell","arguments":"{}"},{"type":"function_call","call_id":"b%d","name":"shell","arguments":"{}"},`+
			`{"type":"function_call_output","call_id":"a%d","output":"Error: no"},{"type":"function_call_output","call_id":"b%d","output":"Error: no"}`, n, n, n, n, n)
	})
	var p responses.ResponseNewParams
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, i := range p.Input.OfInputItemList {
		kinds = append(kinds, *i.GetType())
	}
	if want := []string{"message", "message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output", "message"}; !slices.Equal(kinds, want) {
		t.Errorf("%q: %s", kinds, body)
	}
	if r := p.Input.OfInputItemList[2].OfReasoning; r == nil || r.ID != "r5" {
		t.Errorf("%s", body)
	}
}
