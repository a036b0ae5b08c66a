// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"encoding/json"
	"strings"
)

// anthropicVersion of the Messages API. https://docs.claude.com/en/api/versioning
const anthropicVersion = "2023-06-01"

// maxParts bounds the blocks of one answer.
const maxParts = 512

type (
	anthropicText struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Cache *anthropicCache `json:"cache_control,omitempty"`
	}
	anthropicCall struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	anthropicResult struct {
		Type  string          `json:"type"`
		ID    string          `json:"tool_use_id"`
		Text  string          `json:"content"`
		Error bool            `json:"is_error,omitempty"`
		Cache *anthropicCache `json:"cache_control,omitempty"`
	}
	anthropicMessage struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	anthropicTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	}
	anthropicChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	// anthropicCache marks where a prefix ends that is worth keeping.
	// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
	anthropicCache struct {
		Type string `json:"type"`
	}
)

// anthropicRequest is the body of https://docs.claude.com/en/api/messages. What is kept by the provider between requests ends
// with the system's text, and with the last message.
func anthropicRequest(r Request) any {
	cache := &anthropicCache{"ephemeral"}
	body := struct {
		Model     string             `json:"model"`
		MaxTokens int64              `json:"max_tokens"`
		Stream    bool               `json:"stream"`
		System    []anthropicText    `json:"system"`
		Tools     []anthropicTool    `json:"tools"`
		Choice    *anthropicChoice   `json:"tool_choice,omitempty"`
		Messages  []anthropicMessage `json:"messages"`
	}{Model: Model, MaxTokens: r.MaxOutput, Stream: true, System: []anthropicText{{"text", r.System, cache}}}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, anthropicTool{t.Name, t.Description, t.parameters()})
	}
	if r.Force != "" {
		body.Choice = &anthropicChoice{"tool", r.Force}
	}
	for i, m := range r.Messages {
		if m.Model {
			body.Messages = append(body.Messages, anthropicMessage{"assistant", anthropicSaid(m)})
			continue
		}
		var mark *anthropicCache
		if i == len(r.Messages)-1 {
			mark = cache
		}
		body.Messages = append(body.Messages, anthropicMessage{"user", anthropicAsked(m, mark)})
	}
	return body
}

// anthropicAsked is a message to the model, whose last block has a mark.
func anthropicAsked(m Message, mark *anthropicCache) []any {
	var content []any
	for i, result := range m.Results {
		block := anthropicResult{Type: "tool_result", ID: result.ID, Text: result.Text, Error: result.Failed}
		if m.Text == "" && i == len(m.Results)-1 {
			block.Cache = mark
		}
		content = append(content, block)
	}
	if m.Text != "" {
		content = append(content, anthropicText{"text", m.Text, mark})
	}
	return content
}

// anthropicSaid is a message of the model.
func anthropicSaid(m Message) any {
	if m.Said != nil {
		return m.Said
	}
	var content []any
	if strings.TrimSpace(m.Text) != "" {
		content = append(content, anthropicText{Type: "text", Text: m.Text})
	}
	for _, c := range m.Calls {
		content = append(content, anthropicCall{"tool_use", c.ID, c.Name, c.Arguments})
	}
	return content
}

// anthropicEcho keeps the blocks of an answer.
type anthropicEcho struct {
	parts []*anthropicPart
	at    map[int]*anthropicPart
}

// anthropicPart is a block, and what its deltas add to it.
type anthropicPart struct {
	block                     map[string]json.RawMessage
	kind                      string
	text, thinking, signature strings.Builder
	input                     strings.Builder
}

func (e *anthropicEcho) event(data []byte) {
	var event struct {
		Type  string                     `json:"type"`
		Index int                        `json:"index"`
		Block map[string]json.RawMessage `json:"content_block"`
		Delta struct {
			Text      string `json:"text"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature"`
			Partial   string `json:"partial_json"`
		} `json:"delta"`
	}
	if json.Unmarshal(data, &event) != nil {
		return
	}
	switch event.Type {
	case "content_block_start":
		e.begin(event.Index, event.Block)
	case "content_block_delta":
		if p := e.at[event.Index]; p != nil {
			p.text.WriteString(event.Delta.Text)
			p.thinking.WriteString(event.Delta.Thinking)
			p.signature.WriteString(event.Delta.Signature)
			p.input.WriteString(event.Delta.Partial)
		}
	}
}

func (e *anthropicEcho) begin(index int, block map[string]json.RawMessage) {
	if len(e.parts) == maxParts || block == nil || e.at[index] != nil {
		return
	}
	p := &anthropicPart{block: block, kind: text(block["type"])}
	p.text.WriteString(text(block["text"]))
	p.thinking.WriteString(text(block["thinking"]))
	p.signature.WriteString(text(block["signature"]))
	if e.at == nil {
		e.at = map[int]*anthropicPart{}
	}
	e.parts, e.at[index] = append(e.parts, p), p
}

func (e *anthropicEcho) whole(body []byte) {
	var message struct {
		Content []map[string]json.RawMessage `json:"content"`
	}
	if json.Unmarshal(body, &message) != nil {
		return
	}
	for i, block := range message.Content {
		e.begin(i, block)
	}
}

func (e *anthropicEcho) said() json.RawMessage {
	var content []map[string]json.RawMessage
	for _, p := range e.parts {
		if block := p.close(); block != nil {
			content = append(content, block)
		}
	}
	if len(content) == 0 {
		return nil
	}
	return encoded(content)
}

// close gives the whole block; nil for one that is not taken back: a text of nothing.
func (p *anthropicPart) close() map[string]json.RawMessage {
	switch p.kind {
	case "text":
		if strings.TrimSpace(p.text.String()) == "" {
			return nil
		}
		p.block["text"] = encoded(p.text.String())
	case "thinking":
		p.block["thinking"], p.block["signature"] = encoded(p.thinking.String()), encoded(p.signature.String())
	case "tool_use":
		if input := p.input.String(); input != "" {
			p.block["input"] = json.RawMessage(input)
		}
		if !object(p.block["input"]) {
			p.block["input"] = json.RawMessage("{}")
		}
	}
	return p.block
}

// text of a JSON string; empty where there is none.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}
