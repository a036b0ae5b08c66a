// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// chat is the Chat Completions API of OpenAI.
type chat struct{}

func (chat) serves(r *http.Request) bool {
	return r.URL.Path == "/v1/chat/completions" || r.URL.Path == "/v1/models"
}

func (chat) key(r *http.Request) string { return bearer(r) }

func (chat) read(r *http.Request, body []byte) (*conversation, any, error) {
	if r.URL.Path == "/v1/models" {
		return nil, object{"object": "list", "data": []any{object{"id": "scripted-1", "object": "model", "created": 1_700_000_000, "owned_by": "scripted"}}}, nil
	}
	var request struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role      string `json:"role"`
			Content   blocks `json:"content"`
			Answers   string `json:"tool_call_id"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		ToolChoice    any   `json:"tool_choice"`
		Parallel      *bool `json:"parallel_tool_calls"`
		Choices       int   `json:"n"`
		Most          int   `json:"max_tokens"`
		Completion    int   `json:"max_completion_tokens"`
		StreamOptions struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, nil, err
	}
	if request.Model == "" || len(request.Messages) == 0 {
		return nil, nil, errors.New("model and messages are required")
	}
	if request.Most > 0 && request.Completion > 0 {
		return nil, nil, errors.New("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	c := &conversation{most: request.Most + request.Completion, id: rand.Text()[:12], model: request.Model, streamed: request.Stream, bare: request.ToolChoice == none, forced: names(request.ToolChoice), size: len(body), texts: []string{""},
		thinks: true, single: request.Parallel != nil && !*request.Parallel, choices: max(request.Choices, 1), counted: request.StreamOptions.Usage}
	var open []string
	for i, m := range request.Messages {
		// https://platform.openai.com/docs/guides/function-calling
		if open = slices.DeleteFunc(open, func(id string) bool { return id == m.Answers }); m.Role != "tool" && len(open) > 0 {
			return nil, nil, fmt.Errorf("messages[%d]: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': %q", i, open)
		}
		if m.Role == "assistant" {
			c.turns++
		}
		c.texts = append(c.texts, m.Content.texts()...)
		for _, call := range m.ToolCalls {
			c.texts, c.calls, open = append(c.texts, call.Function.Arguments), append(c.calls, call.ID), append(open, call.ID)
		}
		if m.Role == "tool" {
			c.results = append(c.results, m.Answers)
		}
	}
	for _, t := range request.Tools {
		c.tools = append(c.tools, t.Function.Name)
	}
	return c, nil, nil
}

func (chat) fail(w http.ResponseWriter, status int, message string) { openaiError(w, status, message) }

func (chat) answer(w *stream, c *conversation, t Turn) {
	reason := "stop"
	var calls []object
	for i, call := range t.calls(c) {
		reason = "tool_calls"
		calls = append(calls, object{"id": numbered("call", c.id, i), "type": "function", "function": object{"name": call.Name, "arguments": string(call.Input)}})
	}
	reason = cmp.Or(t.Stop, reason)
	u := t.used(c)
	input := u.input + u.read + u.written + u.writtenHour
	count := object{
		"prompt_tokens": input, "completion_tokens": u.output, "total_tokens": input + u.output,
		"prompt_tokens_details": object{"cached_tokens": u.read}, "completion_tokens_details": object{"reasoning_tokens": u.thought},
	}
	head := func(kind string, choices []any) object {
		return object{"id": fmt.Sprintf("chatcmpl_%s", c.id), "object": kind, "created": 1_700_000_000, "model": c.model, "choices": choices}
	}
	w.Header().Set("X-Request-ID", "req_scripted")
	if !c.streamed {
		message := object{"role": "assistant", "content": t.Text, "refusal": nil}
		if t.Text == "" && len(calls) > 0 {
			message["content"] = nil
		}
		if len(calls) > 0 {
			message["tool_calls"] = calls
		}
		if t.Thinking != "" && !t.has(Hides) {
			message["reasoning_content"] = t.Thinking
		}
		var choices []any
		for i := range c.choices {
			choices = append(choices, object{"index": i, "message": message, "finish_reason": reason})
		}
		answer := head("chat.completion", choices)
		if !t.has(Uncounted) {
			answer["usage"] = count
		}
		w.json(http.StatusOK, answer)
		return
	}
	// Where the usage is asked for it is in the last chunk alone, which has no choices: https://platform.openai.com/docs/api-reference/chat/create
	counted := c.counted && !t.has(Uncounted)
	send := func(chunk object, usage any) {
		if counted {
			chunk["usage"] = usage
		}
		w.event("", chunk)
	}
	chunk := func(delta object, reason any) {
		for i := range c.choices {
			send(head("chat.completion.chunk", []any{object{"index": i, "delta": delta, "finish_reason": reason}}), nil)
		}
	}
	if t.has(Unknown) { // as Azure begins
		send(head("", []any{}), nil)
	}
	chunk(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	if !t.has(Hides) {
		for _, word := range words(t.Thinking) {
			chunk(object{"reasoning_content": word}, nil)
		}
	}
	for _, word := range words(t.Text) {
		chunk(object{"content": word}, nil)
	}
	for i, call := range calls {
		function, _ := call["function"].(object)
		arguments, _ := function["arguments"].(string)
		call["index"], call["function"] = i, object{"name": function["name"], "arguments": ""}
		chunk(object{"tool_calls": []any{call}}, nil)
		half := len(arguments) / 2
		for _, part := range []string{arguments[:half], arguments[half:]} {
			chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": part}}}}, nil)
		}
	}
	chunk(object{}, reason)
	if counted {
		send(head("chat.completion.chunk", []any{}), count)
	}
	w.send("", []byte("[DONE]"))
}

// words of a text, each with what separates it from the next; none of an empty one.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.SplitAfter(text, " ")
}
