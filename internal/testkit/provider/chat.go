// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
		ToolChoice any `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, nil, err
	}
	if request.Model == "" || len(request.Messages) == 0 {
		return nil, nil, errors.New("model and messages are required")
	}
	c := &conversation{id: rand.Text()[:12], model: request.Model, streamed: request.Stream, bare: request.ToolChoice == none, size: len(body), texts: []string{""}}
	for _, m := range request.Messages {
		if m.Role == "assistant" {
			c.turns++
		}
		c.texts = append(c.texts, m.Content.texts()...)
		for _, call := range m.ToolCalls {
			c.texts, c.calls = append(c.texts, call.Function.Arguments), append(c.calls, call.ID)
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
	message := object{"role": "assistant", "content": t.Text}
	reason := "stop"
	var calls []object
	for i, call := range t.calls(c) {
		reason = "tool_calls"
		calls = append(calls, object{"id": fmt.Sprintf("call_%s_%d", c.id, i), "type": "function", "function": object{"name": call.Name, "arguments": string(call.Input)}})
		message["tool_calls"] = calls
	}
	usage := object{"prompt_tokens": c.size / 4, "completion_tokens": t.output(), "total_tokens": c.size/4 + t.output()}
	head := func(kind string, choices []any) object {
		return object{"id": fmt.Sprintf("chatcmpl_%s", c.id), "object": kind, "created": 1_700_000_000, "model": c.model, "choices": choices}
	}
	w.Header().Set("X-Request-ID", "req_scripted")
	if !c.streamed {
		answer := head("chat.completion", []any{object{"index": 0, "message": message, "finish_reason": reason}})
		answer["usage"] = usage
		w.json(http.StatusOK, answer)
		return
	}
	chunk := func(delta object, reason any) {
		w.event("", head("chat.completion.chunk", []any{object{"index": 0, "delta": delta, "finish_reason": reason}}))
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, word := range strings.SplitAfter(t.Text, " ") {
		if word != "" {
			chunk(object{"content": word}, nil)
		}
	}
	for i, call := range calls {
		call["index"] = i
		chunk(object{"tool_calls": []any{call}}, nil)
	}
	chunk(object{}, reason)
	last := head("chat.completion.chunk", []any{})
	last["usage"] = usage
	w.event("", last)
	_, _ = io.WriteString(w.ResponseWriter, "data: [DONE]\n\n") // fails where the client has closed the connection
}
