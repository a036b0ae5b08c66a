// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// steered gives a request with a note at its end, and the next one of the same conversation with the same note. Up to its end the first is the
// beginning of the second.
func steered(t *testing.T, name, head, said, more, tail string) (now, next []byte) {
	t.Helper()
	d, ok := dialect.Find(name)
	if !ok {
		t.Fatal(name)
	}
	var notes []dialect.Note
	steer := func(list string) []byte {
		r, err := d.ReadRequest([]byte(head + list + tail))
		if err != nil {
			t.Fatal(err)
		}
		var ends []int
		for c, at := r.Conversation(), 0; ; {
			_, end, more := c.Next(at)
			if !more {
				break
			}
			ends, at = append(ends, end), end
		}
		if notes == nil {
			notes = []dialect.Note{{After: len(ends), Text: "[SUPERVISOR] Turn 3. The same call was made 4 times. Do something else."}}
		}
		return r.Steer(dialect.Edits{Notes: notes, NoTools: len(list) == len(said)}, ends)
	}
	now, next = steer(said), steer(said+more)
	_, conversation, _ := strings.Cut(string(now), `:[{"`)
	if common, _, _ := strings.Cut(conversation, tail); !strings.Contains(string(next), common) {
		t.Errorf("the next request:\n%s\ndoes not have all of\n%s", next, common)
	}
	return now, next
}

// TestSteeredAnthropic: what is said stands behind the results of all calls, images included, and thoughts keep their signatures.
func TestSteeredAnthropic(t *testing.T) {
	now, next := steered(t, "anthropic", `{"model":"m","max_tokens":10,"messages":[`,
		`{"role":"user","content":"Work."},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"a","name":"Read","input":{"path":"x"}},{"type":"tool_use","id":"b","name":"Read","input":{}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},{"type":"tool_result","tool_use_id":"b","content":"no","is_error":true,"cache_control":{"type":"ephemeral"}}]}`,
		`,{"role":"assistant","content":[{"type":"text","text":"Yes."}]},{"role":"user","content":"Go on."}`, `],"tools":[{"name":"Read","input_schema":{"type":"object"}}]}`)
	for i, body := range [][]byte{now, next} {
		var p anthropic.MessageNewParams
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatal(err)
		}
		if (i == 0) != (p.ToolChoice.OfNone != nil) || len(p.Tools) != 1 {
			t.Errorf("tool choice %+v", p.ToolChoice)
		}
		blocks := p.Messages[2].Content
		if len(blocks) != 3 || blocks[0].OfToolResult == nil || blocks[1].OfToolResult == nil || blocks[2].OfText == nil || !strings.HasPrefix(blocks[2].OfText.Text, "[SUPERVISOR]") {
			t.Errorf("%s", body)
		}
		if thought := p.Messages[1].Content[0].OfThinking; thought == nil || thought.Signature != "c2ln" {
			t.Errorf("the thought: %+v", p.Messages[1].Content[0])
		}
		if image := blocks[0].OfToolResult.Content[0].OfImage; image == nil || image.Source.OfBase64.Data != "eA==" {
			t.Errorf("the image: %+v", blocks[0].OfToolResult.Content)
		}
	}
}

// TestSteeredChat: what is said is a message of its own behind the results of all calls.
func TestSteeredChat(t *testing.T) {
	now, next := steered(t, "openai-chat", `{"model":"m","messages":[`,
		`{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"Work."},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]},`+
			`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]},`+
			`{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"}`,
		`,{"role":"assistant","content":"Yes."},{"role":"user","content":"Go on."}`, `],"tools":[{"type":"function","function":{"name":"read"}}]}`)
	for i, body := range [][]byte{now, next} {
		var p openai.ChatCompletionNewParams
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatal(err)
		}
		if (i == 0) != (p.ToolChoice.OfAuto.Value == "none") || len(p.Tools) != 1 {
			t.Errorf("tool choice %+v", p.ToolChoice)
		}
		if len(p.Messages) < 6 || p.Messages[4].OfTool == nil || p.Messages[5].OfUser == nil || !strings.HasPrefix(p.Messages[5].OfUser.Content.OfString.Value, "[SUPERVISOR]") {
			t.Errorf("%s", body)
		}
		if calls := p.Messages[2].OfAssistant.ToolCalls; len(calls) != 2 {
			t.Errorf("calls %+v", calls)
		}
	}
}

// TestSteeredResponses: what is said is an item of its own behind the output of all calls, and thoughts stay with their calls.
func TestSteeredResponses(t *testing.T) {
	now, next := steered(t, "openai-responses", `{"model":"m","input":[`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"Work."},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,eA=="}]},`+
			`{"type":"reasoning","id":"r","summary":[],"encrypted_content":"x"},{"type":"function_call","call_id":"a","name":"shell","arguments":"{}"},{"type":"function_call","call_id":"b","name":"shell","arguments":"{}"},`+
			`{"type":"function_call_output","call_id":"a","output":"1"},{"type":"function_call_output","call_id":"b","output":"2"}`,
		`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}`,
		`],"tools":[{"type":"function","name":"shell","parameters":{},"strict":false}]}`)
	for i, body := range [][]byte{now, next} {
		var p responses.ResponseNewParams
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatal(err)
		}
		if (i == 0) != (p.ToolChoice.OfToolChoiceMode.Value == responses.ToolChoiceOptionsNone) || len(p.Tools) != 1 {
			t.Errorf("tool choice %+v", p.ToolChoice)
		}
		items := p.Input.OfInputItemList
		if len(items) < 7 || items[1].OfReasoning == nil || items[5].OfFunctionCallOutput == nil || items[6].GetRole() == nil || *items[6].GetRole() != "developer" {
			t.Errorf("%s", body)
		}
	}
}
