// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

type (
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatMessage struct {
		Role    string     `json:"role"`
		Content string     `json:"content"`
		Calls   []chatCall `json:"tool_calls,omitempty"`
		ID      string     `json:"tool_call_id,omitempty"`
	}
	chatDescription struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	chatTool struct {
		Type     string          `json:"type"`
		Function chatDescription `json:"function"`
	}
	chatChoice struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	chatOptions struct {
		Usage bool `json:"include_usage"`
	}
)

// chatRequest is the body of https://platform.openai.com/docs/api-reference/chat/create.
func chatRequest(r Request) any {
	body := struct {
		Model    string      `json:"model"`
		Stream   bool        `json:"stream"`
		Options  chatOptions `json:"stream_options"`
		Tools    []chatTool  `json:"tools"`
		Choice   *chatChoice `json:"tool_choice,omitempty"`
		Messages []any       `json:"messages"`
	}{Model: Model, Stream: true, Options: chatOptions{true}, Messages: []any{chatMessage{Role: "system", Content: r.System}}}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, chatTool{"function", chatDescription{t.Name, t.Description, t.parameters()}})
	}
	if r.Force != "" {
		body.Choice = &chatChoice{Type: "function"}
		body.Choice.Function.Name = r.Force
	}
	for _, m := range r.Messages {
		body.Messages = append(body.Messages, chatMessages(m)...)
	}
	return body
}

// chatMessages of a message: each result is one of its own.
func chatMessages(m Message) []any {
	switch {
	case m.Said != nil:
		return []any{m.Said}
	case m.Model:
		said := chatMessage{Role: "assistant", Content: m.Text}
		for _, c := range m.Calls {
			said.Calls = append(said.Calls, chatCall{c.ID, "function", chatFunction{c.Name, string(c.Arguments)}})
		}
		return []any{said}
	}
	var list []any
	for _, result := range m.Results {
		list = append(list, chatMessage{Role: "tool", Content: failing(result), ID: result.ID})
	}
	if m.Text != "" {
		list = append(list, chatMessage{Role: "user", Content: m.Text})
	}
	return list
}

// chatEcho puts the parts of a message together. Servers add members of their own that they want back, such as thoughts
// (https://api-docs.deepseek.com/guides/thinking_mode) and signatures of calls (https://ai.google.dev/gemini-api/docs/thought-signatures).
type chatEcho struct {
	message map[string]any
	calls   map[int]map[string]any
}

// pieces are the texts that come in pieces; of any other text the last one counts.
func pieces(member string) bool {
	return slices.Contains([]string{"content", "reasoning_content", "reasoning", "refusal", "arguments"}, member)
}

const toolCalls = "tool_calls"

func (e *chatEcho) event(data []byte) {
	var chunk struct {
		Choices []struct {
			Index int            `json:"index"`
			Delta map[string]any `json:"delta"`
		} `json:"choices"`
	}
	if json.Unmarshal(data, &chunk) != nil {
		return
	}
	for _, choice := range chunk.Choices {
		if choice.Index == 0 {
			e.add(choice.Delta)
		}
	}
}

func (e *chatEcho) whole(body []byte) {
	var completion struct {
		Choices []struct {
			Index   int            `json:"index"`
			Message map[string]any `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &completion) != nil {
		return
	}
	for _, choice := range completion.Choices {
		if choice.Index == 0 {
			e.add(choice.Message)
		}
	}
}

// add a part of the message.
func (e *chatEcho) add(part map[string]any) {
	if e.message == nil {
		e.message, e.calls = map[string]any{}, map[int]map[string]any{}
	}
	calls, _ := part[toolCalls].([]any)
	delete(part, toolCalls)
	merge(e.message, part)
	for i, value := range calls {
		call, is := value.(map[string]any)
		if !is {
			continue
		}
		if index, numbered := call["index"].(float64); numbered {
			i = int(index)
		}
		delete(call, "index")
		if e.calls[i] == nil {
			if len(e.calls) == maxParts {
				continue
			}
			e.calls[i] = map[string]any{}
		}
		merge(e.calls[i], call)
	}
}

// merge a part into what has come of it. What is null is left out.
func merge(whole, part map[string]any) {
	for member, value := range part {
		switch value := value.(type) {
		case nil:
		case string:
			if pieces(member) {
				before, is := whole[member].(*longText)
				if !is {
					before = &longText{}
					whole[member] = before
				}
				before.WriteString(value)
			} else {
				before, _ := whole[member].(string)
				whole[member] = cmp.Or(value, before)
			}
		case []any:
			before, _ := whole[member].([]any)
			whole[member] = append(before, value...)
		case map[string]any:
			before, is := whole[member].(map[string]any)
			if !is {
				before = map[string]any{}
				whole[member] = before
			}
			merge(before, value)
		default:
			whole[member] = value
		}
	}
}

// longText is one that comes in pieces.
type longText struct{ strings.Builder }

// MarshalText implements encoding.TextMarshaler.
func (t *longText) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// textOf a member, in pieces or not.
func textOf(value any) string {
	if t, is := value.(*longText); is {
		return t.String()
	}
	s, _ := value.(string)
	return s
}

func (e *chatEcho) said() json.RawMessage {
	if textOf(e.message["content"]) == "" && len(e.calls) == 0 {
		return nil
	}
	var calls []any
	for _, i := range sorted(e.calls) {
		if function, is := e.calls[i]["function"].(map[string]any); is {
			if !object([]byte(textOf(function["arguments"]))) {
				function["arguments"] = "{}"
			}
		}
		calls = append(calls, e.calls[i])
	}
	e.message["role"] = "assistant"
	if calls != nil {
		e.message[toolCalls] = calls
	}
	return encoded(e.message)
}

func sorted(calls map[int]map[string]any) []int {
	var list []int
	for i := range calls {
		list = append(list, i)
	}
	slices.Sort(list)
	return list
}
