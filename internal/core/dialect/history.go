// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"strings"

	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// Conversation is the request as a conversation that repeats earlier messages.
func (r Request) Conversation() conversation.Request { return history{r} }

type history struct{ Request }

// List implements conversation.Request.
func (h history) List() []byte { return h.body[h.history.from:h.history.to] }

// Next implements conversation.Request. A list that is a text is one entry.
func (h history) Next(after int) (entry []byte, end int, ok bool) {
	list := h.List()
	if len(list) == 0 || list[0] != '[' {
		return list, len(list), after == 0 && len(list) > 0
	}
	at := max(after, 1)
	for at < len(list) && (list[at] == ',' || list[at] <= ' ') {
		at++
	}
	if at >= len(list)-1 {
		return nil, 0, false
	}
	end = skip(list, at)
	return list[at:end], end, true
}

// Known implements conversation.Request.
func (h history) Known() conversation.Known { return h.known }

// Message implements conversation.Request.
func (h history) Message(entry []byte) conversation.Message { return h.dialect.message(entry) }

// Setting implements conversation.Request.
func (h history) Setting() (system conversation.Digest, tools bool) {
	if h.system == (span{}) || h.system == h.history {
		return conversation.Digest{}, h.Tools
	}
	value := h.body[h.system.from:h.system.to]
	if h.beside != nil && bytes.Equal(value, h.beside.system) {
		return h.beside.setting, h.Tools
	}
	return setting(value), h.Tools
}

// setting is the digest of a system prompt.
func setting(value []byte) conversation.Digest {
	if bytes.Contains(value, []byte(changing)) {
		return conversation.Sum([]byte(textOf(value, changing)))
	}
	return conversation.Sum(value)
}

// changing begins a block of the system prompt by which Claude Code 2.1 tells its provider of itself, with other words in each request.
const changing = "x-anthropic-"

// block of a message's content, in any dialect.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// parts of a content: a text, or a list.
func parts(content json.RawMessage) []block {
	if len(content) == 0 {
		return nil
	}
	if content[0] == '"' {
		text, ok := plainText(content)
		if !ok {
			_ = json.Unmarshal(content, &text) // a text that is cut in half has a mark there
		}
		return []block{{Type: "text", Text: text}}
	}
	if list, ok := plainBlocks(content); ok {
		return list
	}
	var list []block
	if json.Unmarshal(content, &list) == nil {
		return list
	}
	// What can be read of a list is read where some of its blocks are strange.
	var raw []json.RawMessage
	if json.Unmarshal(content, &raw) != nil {
		return nil
	}
	list = make([]block, len(raw))
	for i, r := range raw {
		if json.Unmarshal(r, &list[i]) != nil {
			list[i] = block{}
		}
	}
	return list
}

// textOf a content, without blocks that begin with a text.
func textOf(content json.RawMessage, without string) string {
	var b strings.Builder
	for _, p := range parts(content) {
		switch p.Type {
		case "text", "input_text", "output_text":
			if without == "" || !strings.HasPrefix(p.Text, without) {
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(p.Text)
			}
		}
	}
	return b.String()
}

// resultOf a tool: its text, and the digest of what else it has given. A new screenshot makes a different result even with the same text.
func resultOf(text string, content json.RawMessage) conversation.Quote {
	q := conversation.WholeOf(text)
	if count, _ := others(content); count == 0 {
		return q
	}
	var blocks []struct {
		Type   string          `json:"type"`
		Source json.RawMessage `json:"source"`
		Image  json.RawMessage `json:"image_url"`
		File   json.RawMessage `json:"file_data"`
		FileID json.RawMessage `json:"file_id"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		q.Other = conversation.Sum(content)
		return q
	}
	var all [][]byte
	for _, b := range blocks {
		all = append(all, []byte(b.Type), b.Source, b.Image, b.File, b.FileID)
	}
	q.Other = conversation.Sum(all...)
	return q
}

// others counts the blocks of a content without text, by kind.
func others(content json.RawMessage) (count int, kinds conversation.Digest) {
	var all []byte
	for _, b := range parts(content) {
		switch b.Type {
		case "text", "input_text", "output_text":
		default:
			count, all = count+1, append(all, b.Type...)
		}
	}
	if count > 0 {
		kinds = conversation.Sum(all)
	}
	return count, kinds
}

// roleOf a message.
func roleOf(role string) conversation.Role {
	switch role {
	case "assistant":
		return conversation.RoleModel
	case "system", "developer":
		return conversation.RoleSystem
	default:
		return conversation.RoleUser
	}
}

// callOf a tool.
func callOf(id, name string, arguments []byte) conversation.Call {
	return conversation.Call{ID: id, Name: name, Arguments: conversation.QuoteOf(string(arguments)), Edit: conversation.EditOf(arguments)}
}

// strange is a message of which nothing can be read.
func strange(role conversation.Role, entry []byte) conversation.Message {
	return conversation.Message{Role: role, Other: conversation.Sum(entry)}
}
