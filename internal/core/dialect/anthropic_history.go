// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// readAnthropic reads a message of https://docs.claude.com/en/api/messages.
func readAnthropic(entry []byte) conversation.Message {
	role, content, ok := plainMessage(entry)
	if !ok {
		var e struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(entry, &e) != nil {
			return strange(conversation.RoleUser, entry)
		}
		role, content = e.Role, e.Content
	}
	m := conversation.Message{Role: roleOf(role)}
	var text strings.Builder
	var other []byte
	for _, p := range parts(content) {
		switch {
		case p.Type == "text":
			if text.Len() > 0 {
				text.WriteByte('\n')
			}
			text.WriteString(p.Text)
		case p.Type == "tool_use" && len(m.Calls) < conversation.MaxParts:
			m.Calls = append(m.Calls, callOf(p.ID, p.Name, p.Input))
		case p.Type == "tool_result" && len(m.Results) < conversation.MaxParts:
			m.Results = append(m.Results, conversation.Result{ID: p.ToolUseID, Text: resultOf(textOf(p.Content, ""), p.Content), Failed: p.IsError})
		case p.Type == "thinking", p.Type == "redacted_thinking": // clients leave old ones out
		default:
			m.Images++
			other = append(other, p.Type...)
		}
	}
	m.Text = conversation.QuoteOf(text.String())
	if len(other) > 0 {
		m.Other = conversation.Sum(other)
	}
	return m
}
