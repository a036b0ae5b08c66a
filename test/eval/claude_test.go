// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// quoted is a text as JSON.
func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// object of JSON, from names and values; a value that is a string is quoted.
func object(pairs ...any) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		data, err := json.Marshal(pairs[i+1])
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "%q:%s", pairs[i], data)
	}
	b.WriteByte('}')
	return b.String()
}

// claude is Claude Code 2.1.
func claude() client {
	return client{
		name: "claude-code", dialect: "anthropic", prunes: true,
		lead:   func() []*entry { return nil },
		system: claudeSystem, body: claudeBody, stream: claudeStream, whole: claudeWhole, tool: claudeTool, compact: claudeCompact,
	}
}

func claudeSystem(role string) string {
	switch role {
	case "main":
		return "You are an interactive agent that helps with tasks of software engineering."
	case "sub":
		return "You are an agent for one part of a task. Do what has been asked, nothing more."
	default:
		return "Write a title of a few words for the conversation."
	}
}

const mark = `,"cache_control":{"type":"ephemeral"}`

// drawClaude draws a message; a marked one as a list of blocks of which the last has the mark.
func drawClaude(e *entry, first, marked bool) string {
	cached := &e.drawn
	m := ""
	if marked {
		cached, m = &e.marked, mark
	}
	if *cached != "" {
		return *cached
	}
	var blocks []string
	role := "user"
	if e.role == "model" {
		role = "assistant"
		if len(e.text)%3 == 0 {
			blocks = append(blocks, object("type", "thinking", "thinking", "Think about "+e.text, "signature", "c2ln"))
		}
	}
	for _, r := range e.results {
		var content any = r.text
		if r.image != "" {
			source := map[string]string{"type": "base64", "media_type": "image/png", "data": r.image}
			content = []map[string]any{{"type": "image", "source": source}}
		}
		blocks = append(blocks, object("tool_use_id", r.id, "type", "tool_result", "content", content, "is_error", r.failed))
	}
	if e.text != "" {
		if first {
			blocks = append(blocks, object("type", "text", "text", "<system-reminder>\nThe folder is /workspace.\n</system-reminder>"))
		}
		blocks = append(blocks, object("type", "text", "text", e.text))
	}
	for _, c := range e.calls {
		blocks = append(blocks, object("type", "tool_use", "id", c.id, "name", c.name, "input", json.RawMessage(c.arguments)))
	}
	if len(blocks) == 0 {
		blocks = append(blocks, object("type", "text", "text", "(no content)"))
	}
	if !marked && !first && len(blocks) == 1 && e.role == "user" && e.text != "" {
		*cached = object("role", role, "content", e.text)
		return *cached
	}
	last := len(blocks) - 1
	blocks[last] = strings.TrimSuffix(blocks[last], "}") + m + "}"
	*cached = `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + "]}"
	return *cached
}

func claudeBody(w *world, t *talk) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"claude-opus-4-8","messages":[`)
	for i, e := range t.entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(drawClaude(e, i == 0 && t.tools, i >= len(t.entries)-2 && e.role == "user" && t.tools))
	}
	b.WriteString(`],"system":[`)
	b.WriteString(object("type", "text", "text", fmt.Sprintf("x-anthropic-billing-header: cc_version=2.1.197.%03x; cc_entrypoint=cli;", w.verdict.requests%4096)) + ",")
	b.WriteString(`{"type":"text","text":` + quoted(t.system) + mark + "}")
	b.WriteString(`],"tools":[`)
	if t.tools {
		for i, name := range append([]string{"Task", "Bash", "Glob", "Grep", "Read", "Edit", "Write", "WebFetch", "TodoWrite", "BashOutput", "mcp__tracker__get_issue"}, t.servers...) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"name":"` + name + `","description":"","input_schema":{"type":"object"}}`)
		}
	}
	b.WriteString(`],"metadata":{"user_id":"user_1"},"max_tokens":32000,"stream":true}`)
	return []byte(b.String())
}

// event of a stream.
func event(b *strings.Builder, name, data string) {
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: " + data + "\n\n")
}

func claudeStream(w *world, s said) []byte {
	var b strings.Builder
	event(&b, "message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":"claude-opus-4-8","content":[],"stop_reason":null,"usage":{"input_tokens":6,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":1}}}`,
		w.id("msg"), s.usage/10, s.usage-s.usage/10-6))
	index := 0
	if s.text != "" {
		event(&b, "content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, index))
		for _, part := range s.parts() {
			event(&b, "content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%s}}`, index, quoted(part)))
		}
		if s.half {
			return []byte(b.String())
		}
		event(&b, "content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
		index++
	}
	stop := "end_turn"
	for _, c := range s.calls {
		stop = "tool_use"
		event(&b, "content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, index, c.id, c.name))
		event(&b, "content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, index, quoted(c.arguments)))
		event(&b, "content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
		index++
	}
	event(&b, "message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, stop, 20+len(s.text)/4))
	event(&b, "message_stop", `{"type":"message_stop"}`)
	return []byte(b.String())
}

func claudeWhole(w *world, s said) []byte {
	var blocks []string
	if s.text != "" {
		blocks = append(blocks, object("type", "text", "text", s.text))
	}
	stop := "end_turn"
	for _, c := range s.calls {
		stop = "tool_use"
		blocks = append(blocks, object("type", "tool_use", "id", c.id, "name", c.name, "input", json.RawMessage(c.arguments)))
	}
	return []byte(fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","model":"claude-opus-4-8","content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":6,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}}`,
		w.id("msg"), strings.Join(blocks, ","), stop, s.usage/10, s.usage-s.usage/10-6, 20+len(s.text)/4))
}

// claudeCompact asks for a summary, of late with the tools that the conversation has, and goes on with it alone.
func claudeCompact(a *agent, summary string) {
	t := *a.talk
	if t.tools = a.w.random.IntN(2) == 0; !t.tools {
		t.system = "You summarize conversations."
	}
	t.entries = append(slices.Clip(t.entries), &entry{role: "user", text: "Your task is to write a detailed summary of the conversation so far. Call no tools."})
	b := &agent{w: a.w, talk: &t, latency: a.latency}
	b.ask(true)
	b.answer(said{text: "<summary>" + summary + "</summary>"})
	a.entries = []*entry{{role: "user", text: "This session is continued from one that ran out of context. The summary:\n" + summary + "\nGo on with the last task."}}
}
