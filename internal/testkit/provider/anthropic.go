// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	// What the model has thought: as text with its signature, or as data that the provider alone can read.
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	Data      string `json:"data"`
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
			Type   string `json:"type"`
			Single bool   `json:"disable_parallel_tool_use"`
		} `json:"tool_choice"`
		Thinking struct {
			Type   string `json:"type"`
			Budget int    `json:"budget_tokens"`
		} `json:"thinking"`
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
	if request.MaxTokens <= request.Thinking.Budget { // https://docs.claude.com/en/docs/build-with-claude/extended-thinking
		return nil, nil, errors.New("`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	c := &conversation{most: request.MaxTokens, id: rand.Text()[:12], model: request.Model, streamed: request.Stream, bare: request.ToolChoice.Type == none, forced: request.ToolChoice.Type == "tool", size: len(body), texts: append([]string{""}, request.System.texts()...),
		thinks: request.Thinking.Type == "enabled" || request.Thinking.Type == "adaptive", single: request.ToolChoice.Single}
	var order order
	for i, m := range request.Messages {
		if err := order.message(i, m.Role, m.Content); err != nil {
			return nil, nil, err
		}
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
	return c, nil, order.end(request.Thinking.Type == "enabled")
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

// order of a conversation, as the API demands it.
// https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks
type order struct {
	role string
	// open calls of the last answer, whether something else has come since it, and whether it was thought about first and must be.
	open                 []string
	other, thought, must bool
	// last is the answer's place.
	last int
}

// thoughtful begins the IDs of calls before which the model has thought. Other IDs have no lower case there.
const thoughtful = "toolu_t"

func (o *order) message(i int, role string, content blocks) error {
	if role != o.role {
		o.other = false
		if role == "assistant" {
			if err := o.unanswered(); err != nil {
				return err
			}
			o.thought, o.must, o.last = false, false, i
		}
	}
	o.role = role
	for n, b := range content {
		switch b.Type {
		case "thinking", "redacted_thinking":
			if b.Type == "thinking" && !signed(b.Thinking, b.Signature) || b.Type == "redacted_thinking" && !unsealed(b.Data) {
				return fmt.Errorf("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, n)
			}
			o.thought = true
		case "tool_use":
			o.open = append(o.open, b.ID)
			o.must = o.must || strings.HasPrefix(b.ID, thoughtful) && !o.thought
		case "tool_result":
			if o.other && len(o.open) > 0 {
				return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", o.last, strings.Join(o.open, ", "))
			}
			o.open = slices.DeleteFunc(o.open, func(id string) bool { return id == b.Answers })
		default:
			o.other = true
		}
	}
	return nil
}

func (o *order) unanswered() error {
	if len(o.open) > 0 {
		return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", o.last, strings.Join(o.open, ", "))
	}
	return nil
}

// end of the conversation; a request that enables thinking has to bring what was thought before the last calls.
func (o *order) end(enabled bool) error {
	if enabled && o.must {
		return fmt.Errorf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found another block", o.last)
	}
	return o.unanswered()
}

// shown and kept begin what is sealed of a thought that the client may read, and of one that it may not.
const shown, kept = "shown:", "kept:"

// signed says whether a thought comes back as it was given.
func signed(thought, signature string) bool {
	return thought == "" && unsealed(signature) || signature == sealed(shown+thought)
}

// thinking is the block of what a model thinks.
func thinking(t Turn) object {
	switch {
	case t.has(Redacts):
		return object{"type": "redacted_thinking", "data": sealed(kept + t.Thinking)}
	case t.has(Hides):
		return object{"type": "thinking", "thinking": "", "signature": sealed(kept + t.Thinking)}
	}
	return object{"type": "thinking", "thinking": t.Thinking, "signature": sealed(shown + t.Thinking)}
}

func (anthropic) answer(w *stream, c *conversation, t Turn) {
	var content []object
	mark := ""
	if t.Thinking != "" {
		content, mark = append(content, thinking(t)), "t"
	}
	if t.Text != "" {
		content = append(content, object{"type": "text", "text": t.Text})
	}
	reason := "end_turn"
	for i, call := range t.calls(c) {
		reason = "tool_use"
		content = append(content, object{"type": "tool_use", "id": numbered("toolu", mark+c.id, i), "name": call.Name, "input": call.Input})
	}
	reason = cmp.Or(t.Stop, reason)
	message := object{
		"id": fmt.Sprintf("msg_%s", c.id), "type": "message", "role": "assistant", "model": c.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil,
	}
	first, last := t.anthropicUsage(c)
	w.Header().Set("Request-Id", "req_scripted")
	if !c.streamed {
		if !t.has(Uncounted) {
			maps.Copy(first, last)
			message["usage"] = first
		}
		w.json(http.StatusOK, message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	if !t.has(Uncounted) {
		message["usage"] = first
	}
	w.typed("message_start", object{"message": message})
	w.typed("ping", object{})
	if t.has(Unknown) {
		w.typed("weather_report", object{"index": 0, "delta": object{"type": "weather_delta", "text": "sunny"}})
	}
	for i, block := range content {
		w.block(i, block)
		w.typed("ping", object{})
	}
	end := object{"delta": object{"stop_reason": reason, "stop_sequence": nil}}
	if !t.has(Uncounted) {
		end["usage"] = last
	}
	w.typed("message_delta", end)
	w.typed("message_stop", object{})
}

// anthropicUsage of a turn: what the first event of a stream says, and the last. The counts of the last replace those of the first.
// https://platform.claude.com/docs/en/build-with-claude/streaming
func (t Turn) anthropicUsage(c *conversation) (first, last object) {
	u := t.used(c)
	first = object{
		"input_tokens": u.input, "output_tokens": 1, "cache_read_input_tokens": u.read, "cache_creation_input_tokens": u.written + u.writtenHour,
		"cache_creation": object{"ephemeral_5m_input_tokens": u.written, "ephemeral_1h_input_tokens": u.writtenHour}, "service_tier": "standard",
	}
	return first, object{"output_tokens": u.output}
}

// block streams a text word by word, and a call's input in two halves.
func (w *stream) block(index int, block object) {
	delta := func(d object) { w.typed("content_block_delta", object{"index": index, "delta": d}) }
	begin := block
	switch block["type"] {
	case "tool_use":
		begin = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
	case "thinking":
		begin = object{"type": "thinking", "thinking": "", "signature": ""}
	case "text":
		begin = object{"type": "text", "text": ""}
	}
	w.typed("content_block_start", object{"index": index, "content_block": begin})
	switch block["type"] {
	case "thinking":
		text, _ := block["thinking"].(string)
		for _, word := range words(text) {
			delta(object{"type": "thinking_delta", "thinking": word})
		}
		delta(object{"type": "signature_delta", "signature": block["signature"]})
	case "text":
		text, _ := block["text"].(string)
		for _, word := range words(text) {
			delta(object{"type": "text_delta", "text": word})
		}
	case "tool_use":
		input, _ := block["input"].(json.RawMessage)
		half := len(input) / 2
		for _, part := range []string{string(input[:half]), string(input[half:])} {
			delta(object{"type": "input_json_delta", "partial_json": part})
		}
	}
	w.typed("content_block_stop", object{"index": index})
}
