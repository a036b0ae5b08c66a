// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"regexp"
	"strings"

	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

type chatEntry struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   []chatCall      `json:"tool_calls"`
	CallID  string          `json:"tool_call_id"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Function chatFunction `json:"function"`
	Custom   struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (m *chatEntry) plainMember(name string, value []byte) bool {
	switch name {
	case "role":
		return plainTo(&m.Role, value)
	case "content":
		m.Content = value
		return true
	case "tool_calls":
		if value[0] != '[' {
			return false
		}
		for element := range plainElements(value) {
			var c chatCall
			if !plainMembers(element, c.plainMember) {
				return false
			}
			m.Calls = append(m.Calls, c)
		}
		return true
	case "tool_call_id":
		return plainTo(&m.CallID, value)
	}
	return plainNames{"role", "content", "tool_calls", "tool_call_id"}.other(name)
}

func (c *chatCall) plainMember(name string, value []byte) bool {
	switch name {
	case "id":
		return plainTo(&c.ID, value)
	case "function":
		return plainMembers(value, c.Function.plainMember)
	}
	return plainNames{"id", "function", "custom"}.other(name)
}

func (f *chatFunction) plainMember(name string, value []byte) bool {
	switch name {
	case "name":
		return plainTo(&f.Name, value)
	case "arguments":
		return plainTo(&f.Arguments, value)
	}
	return plainNames{"name", "arguments"}.other(name)
}

// readChat reads a message of https://platform.openai.com/docs/api-reference/chat/create.
func readChat(entry []byte) conversation.Message {
	var e chatEntry
	if !plainMembers(entry, e.plainMember) {
		e = chatEntry{}
		if json.Unmarshal(entry, &e) != nil {
			return strange(conversation.RoleUser, entry)
		}
	}
	if e.Role == "tool" {
		return conversation.Message{Role: conversation.RoleUser, Results: []conversation.Result{{ID: e.CallID, Text: resultOf(unnumbered(textOf(e.Content, "")), e.Content)}}}
	}
	m := conversation.Message{Role: roleOf(e.Role), Text: conversation.QuoteOf(textOf(e.Content, ""))}
	for _, c := range e.Calls[:min(len(e.Calls), conversation.MaxParts)] {
		m.Calls = append(m.Calls, callOf(c.ID, cmp.Or(c.Function.Name, c.Custom.Name), []byte(cmp.Or(c.Function.Arguments, c.Custom.Input))))
	}
	m.Images, m.Other = others(e.Content)
	return m
}

type responsesEntry struct {
	responsesItem

	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
	Status  string          `json:"status"`
}

func (e *responsesEntry) plainMember(name string, value []byte) bool {
	switch name {
	case "type":
		return plainTo(&e.Type, value)
	case "id":
		return plainTo(&e.ID, value)
	case "call_id":
		return plainTo(&e.CallID, value)
	case "name":
		return plainTo(&e.Name, value)
	case "arguments":
		return plainTo(&e.Arguments, value)
	case "input":
		return plainTo(&e.Input, value)
	case "role":
		return plainTo(&e.Role, value)
	case "status":
		return plainTo(&e.Status, value)
	case "action":
		e.Action = value
	case "content":
		e.Content = value
	case "output":
		e.Output = value
	default:
		return plainNames{"type", "id", "call_id", "name", "arguments", "input", "role", "status", "action", "content", "output"}.other(name)
	}
	return true
}

// readResponses reads an item of https://platform.openai.com/docs/api-reference/responses/create.
func readResponses(entry []byte) conversation.Message {
	if len(entry) > 0 && entry[0] == '"' {
		return conversation.Message{Role: conversation.RoleUser, Text: conversation.QuoteOf(textOf(entry, ""))}
	}
	var e responsesEntry
	if !plainMembers(entry, e.plainMember) {
		e = responsesEntry{}
		if json.Unmarshal(entry, &e) != nil {
			return strange(conversation.RoleUser, entry)
		}
	}
	switch e.Type {
	case "", "message":
		m := conversation.Message{Role: roleOf(e.Role), Text: conversation.QuoteOf(textOf(e.Content, ""))}
		m.Images, m.Other = others(e.Content)
		return m
	case "function_call":
		return called(callOf(e.CallID, e.Name, []byte(e.Arguments)))
	case "custom_tool_call":
		return called(callOf(e.CallID, e.Name, []byte(e.Input)))
	case "local_shell_call", "shell_call", "apply_patch_call":
		return called(callOf(cmp.Or(e.CallID, e.ID), e.Type, e.Action))
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output":
		output := textOf(e.Output, "")
		if output == "" {
			output = string(e.Output)
		}
		return conversation.Message{Role: conversation.RoleUser, Results: []conversation.Result{{
			ID: cmp.Or(e.CallID, e.ID), Text: resultOf(unmeasured(output), e.Output), Failed: e.Status == "failed" || e.Status == "incomplete",
		}}}
	default: // what the model thought, and calls that the provider makes itself
		return strange(conversation.RoleModel, entry)
	}
}

// measured is what Codex says of the call of a command in addition to its output and its exit code. It is another each time, also where the
// command does the same: lines before the output, or a member after it.
var measured = regexp.MustCompile(`(?m)^(?:Chunk ID: \w+|Wall time: [0-9.]+ seconds|Original token count: \d+)\n|,"duration_seconds":[0-9.e-]+`)

// unmeasured is a result without that, and without the word that announces an output where there is none.
func unmeasured(output string) string {
	const most = 400 // bytes in which it is
	from, to := min(len(output), most), max(0, len(output)-most)
	if i := strings.Index(output[:from], "Output:\n"); i >= 0 {
		head, rest := measured.ReplaceAllString(output[:i], ""), output[i:]
		if len(rest) == len("Output:\n") {
			return strings.TrimSpace(head)
		}
		return head + rest
	}
	if strings.HasPrefix(output, `{"output":`) {
		return output[:to] + measured.ReplaceAllString(output[to:], "")
	}
	return output
}

// numbered is what Gemini CLI and Qwen Code say of the processes of a command, in lines behind what it prints. The numbers are others each time.
var numbered = regexp.MustCompile(`(?m)^(?:Process Group PGID|Background PIDs): (?:[0-9, ]+|\(none\))(?:\n|\z)`)

// unnumbered is a result without that.
func unnumbered(output string) string {
	const most = 400 // bytes in which it is
	to := max(0, len(output)-most)
	if !strings.Contains(output[to:], "PGID: ") && !strings.Contains(output[to:], "PIDs: ") { // which few results have
		return output
	}
	to += strings.IndexByte(output[to:], '\n') + 1 // a line that begins before is none of them
	return output[:to] + numbered.ReplaceAllString(output[to:], "")
}

func called(c conversation.Call) conversation.Message {
	return conversation.Message{Role: conversation.RoleModel, Calls: []conversation.Call{c}}
}
