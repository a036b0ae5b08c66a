// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) serves(r *http.Request) bool {
	return r.URL.Path == "/v1/messages" || r.URL.Path == "/v1/messages/count_tokens" ||
		r.Header.Get("Anthropic-Version") != "" && r.URL.Path == "/v1/models"
}

func (anthropic) key(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

type object = map[string]any

// blocks are the content of a message: a text, or a list of blocks.
type blocks []struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content blocks          `json:"content"`
	Input   json.RawMessage `json:"input"`
	ID      string          `json:"id"`
	Answers string          `json:"tool_use_id"`
}

// UnmarshalJSON reads both forms.
func (b *blocks) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*b = make(blocks, 1)
		(*b)[0].Type = "text"
		return json.Unmarshal(data, &(*b)[0].Text)
	}
	type list blocks
	return json.Unmarshal(data, (*list)(b))
}

// texts of the blocks; a call's input counts as one.
func (b blocks) texts() (texts []string) {
	for _, block := range b {
		switch {
		case block.Text != "":
			texts = append(texts, block.Text)
		case len(block.Input) > 0:
			texts = append(texts, string(block.Input))
		}
		texts = append(texts, block.Content.texts()...)
	}
	return texts
}

// interrupted is what Claude Code says in the model's place (2.1.330).
const interrupted = "No response requested."

func (anthropic) read(r *http.Request, body []byte) (*conversation, any, error) {
	if r.URL.Path == "/v1/models" {
		model := object{"type": "model", "id": "scripted-1", "display_name": "Scripted", "created_at": "2026-01-01T00:00:00Z"}
		return nil, object{"data": []any{model}, "has_more": false, "first_id": "scripted-1", "last_id": "scripted-1"}, nil
	}
	var request struct {
		Model     string `json:"model"`
		Stream    bool   `json:"stream"`
		MaxTokens int    `json:"max_tokens"`
		System    blocks `json:"system"`
		Messages  []struct {
			Role    string `json:"role"`
			Content blocks `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		ToolChoice struct {
			Type string `json:"type"`
		} `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, nil, err
	}
	if r.URL.Path == "/v1/messages/count_tokens" {
		return nil, object{"input_tokens": len(body) / 4}, nil
	}
	if request.Model == "" || len(request.Messages) == 0 || request.MaxTokens <= 0 {
		return nil, nil, errors.New("model, messages and max_tokens are required")
	}
	c := &conversation{id: rand.Text()[:12], model: request.Model, streamed: request.Stream, bare: request.ToolChoice.Type == none, size: len(body), texts: append([]string{""}, request.System.texts()...)}
	for _, m := range request.Messages {
		// When Claude Code goes on with a session that was interrupted, it answers for the model.
		if m.Role == "assistant" && !slices.Equal(m.Content.texts(), []string{interrupted}) {
			c.turns++
		}
		c.texts = append(c.texts, m.Content.texts()...)
		for _, b := range m.Content {
			switch b.Type {
			case "tool_use":
				c.calls = append(c.calls, b.ID)
			case "tool_result":
				c.results = append(c.results, b.Answers)
			}
		}
	}
	for _, t := range request.Tools {
		c.tools = append(c.tools, t.Name)
	}
	return c, nil, nil
}

func (anthropic) fail(w http.ResponseWriter, status int, message string) {
	kinds := map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
	kind := kinds[status]
	if kind == "" {
		kind = "api_error"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_scripted")
	w.WriteHeader(status)
	_, _ = w.Write(encode(object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_scripted"}))
}

func (anthropic) answer(w *stream, c *conversation, t Turn) {
	var content []object
	if t.Text != "" {
		content = append(content, object{"type": "text", "text": t.Text})
	}
	reason := "end_turn"
	for i, call := range t.calls(c) {
		reason = "tool_use"
		content = append(content, object{"type": "tool_use", "id": fmt.Sprintf("toolu_%s_%d", c.id, i), "name": call.Name, "input": call.Input})
	}
	usage := object{"input_tokens": c.size / 4, "output_tokens": t.output(), "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
	message := object{
		"id": fmt.Sprintf("msg_%s", c.id), "type": "message", "role": "assistant", "model": c.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "usage": usage,
	}
	w.Header().Set("Request-Id", "req_scripted")
	if !c.streamed {
		w.json(http.StatusOK, message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	w.event("message_start", object{"type": "message_start", "message": message})
	w.event("ping", object{"type": "ping"})
	for i, block := range content {
		w.block(i, block)
	}
	w.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	w.event("message_stop", object{"type": "message_stop"})
}

// block streams a text word by word, and a call's input in two halves.
func (w *stream) block(index int, block object) {
	delta := func(d object) {
		w.event("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": d})
	}
	begin := object{"type": "text", "text": ""}
	if block["type"] == "tool_use" {
		begin = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
	}
	w.event("content_block_start", object{"type": "content_block_start", "index": index, "content_block": begin})
	if text, ok := block["text"].(string); ok {
		for _, word := range strings.SplitAfter(text, " ") {
			delta(object{"type": "text_delta", "text": word})
		}
	} else if input, ok := block["input"].(json.RawMessage); ok {
		half := len(input) / 2
		for _, part := range []string{string(input[:half]), string(input[half:])} {
			delta(object{"type": "input_json_delta", "partial_json": part})
		}
	}
	w.event("content_block_stop", object{"type": "content_block_stop", "index": index})
}
