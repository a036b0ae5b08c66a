// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"strings"
)

// opencode is opencode 1.18 with a provider that speaks chat completions.
func opencode() client {
	const system = "You are an agent for software engineering in a terminal.\n<env>\n  Working directory: /workspace\n</env>"
	return client{
		name: "opencode", dialect: "openai-chat", prunes: true,
		lead: func() []*entry { return []*entry{{role: "system", text: system}} },
		system: func(role string) string {
			if role == "title" {
				return "You write titles."
			}
			return system
		},
		body: opencodeBody, stream: opencodeStream, whole: opencodeWhole, tool: opencodeTool, compact: opencodeCompact,
	}
}

func drawChat(e *entry) string {
	if e.drawn != "" {
		return e.drawn
	}
	var list []string
	switch e.role {
	case "model":
		var calls []string
		for _, c := range e.calls {
			calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, c.id, c.name, quoted(c.arguments)))
		}
		content := quoted(e.text)
		if len(calls) == 0 {
			list = append(list, `{"role":"assistant","content":`+content+"}")
		} else {
			list = append(list, `{"role":"assistant","content":`+content+`,"tool_calls":[`+strings.Join(calls, ",")+"]}")
		}
	default:
		for _, r := range e.results {
			text := r.text
			if r.image != "" {
				text = "Image read successfully"
			}
			list = append(list, object("role", "tool", "tool_call_id", r.id, "content", text))
		}
		for _, r := range e.results { // the provider takes pictures from users alone
			if r.image != "" {
				list = append(list, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+r.image+`"}}]}`)
			}
		}
		if e.text != "" {
			list = append(list, object("role", e.role, "content", e.text))
		}
	}
	e.drawn = strings.Join(list, ",")
	return e.drawn
}

func opencodeBody(_ *world, t *talk) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"qwen3-coder","max_tokens":32000,"messages":[`)
	for i, e := range t.entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(drawChat(e))
	}
	b.WriteByte(']')
	if t.tools {
		b.WriteString(`,"tools":[`)
		for i, name := range append([]string{"bash", "edit", "glob", "grep", "read", "task", "todowrite", "webfetch", "write", "tracker_get_issue"}, t.servers...) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"type":"function","function":{"name":"` + name + `","parameters":{"type":"object"}}}`)
		}
		b.WriteString(`],"tool_choice":"auto"`)
	}
	b.WriteString(`,"stream":true,"stream_options":{"include_usage":true}}`)
	return []byte(b.String())
}

func opencodeStream(w *world, s said) []byte {
	var b strings.Builder
	id := w.id("chatcmpl")
	chunk := func(delta, finish string) {
		event(&b, "", fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","model":"qwen3-coder","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, id, delta, finish))
	}
	for i, part := range s.parts() {
		if i == 0 {
			chunk(`{"role":"assistant","content":`+quoted(part)+"}", "null")
		} else {
			chunk(`{"content":`+quoted(part)+"}", "null")
		}
	}
	if s.half {
		return []byte(b.String())
	}
	stop := `"stop"`
	for i, c := range s.calls {
		stop = `"tool_calls"`
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, c.id, c.name), "null")
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoted(c.arguments)), "null")
	}
	chunk("{}", stop)
	event(&b, "", fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","model":"qwen3-coder","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`,
		id, s.usage, 20+len(s.text)/4, s.usage*8/10))
	event(&b, "", "[DONE]")
	return []byte(b.String())
}

func opencodeWhole(w *world, s said) []byte {
	message, stop := `"content":`+quoted(s.text), "stop"
	var calls []string
	for _, c := range s.calls {
		stop = "tool_calls"
		calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, c.id, c.name, quoted(c.arguments)))
	}
	if len(calls) > 0 {
		message += `,"tool_calls":[` + strings.Join(calls, ",") + "]"
	}
	return []byte(fmt.Sprintf(`{"id":%q,"object":"chat.completion","model":"qwen3-coder","choices":[{"index":0,"message":{"role":"assistant",%s},"finish_reason":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`,
		w.id("chatcmpl"), message, stop, s.usage, 20+len(s.text)/4, s.usage*8/10))
}

// opencodeCompact asks for a summary without tools, under another system prompt.
func opencodeCompact(a *agent, summary string) {
	t := talk{role: "summary", entries: append([]*entry{{role: "system", text: "You summarize conversations."}}, a.entries[1:]...)}
	t.entries = append(t.entries, &entry{role: "user", text: "Write a detailed prompt for going on with this conversation."})
	b := &agent{w: a.w, talk: &t, latency: a.latency}
	b.ask(true)
	b.answer(said{text: summary})
	a.entries = []*entry{a.entries[0], {role: "user", text: "What did we do so far?"}, {role: "model", text: summary}, {role: "user", text: "Continue if you have next steps"}}
}

// opencodeTool is a call and its result. Nothing marks an error, and of a command's exit code the model hears nothing.
func opencodeTool(w *world, x action) (name, arguments, text string, failed bool) {
	name, arguments, text = opencodeCall(w, x)
	switch x.ending {
	case fine:
	case exited:
		switch x.verb {
		case searches, finds:
			text = "No files found"
		case fetches:
			text = "Request failed with status code: 503"
		default:
			text = x.output
		}
	case missing:
		if text = "File not found: " + folder + x.path; x.verb == runs {
			text = "/bin/bash: line 1: " + strings.Fields(x.command)[0] + ": command not found\n"
		}
	case unmatched:
		text = "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings."
	case unread:
		text = "You must read file " + folder + x.path + " before overwriting it. Use the Read tool first"
	case denied:
		text = "The user rejected permission to use this specific tool call."
	case timedOut:
		text = x.output + "\n\n<bash_metadata>\nbash tool terminated command after exceeding timeout 120000 ms\n</bash_metadata>"
	case malformed:
		return "invalid", object("tool", name, "error", "Invalid input for tool "+name), "The arguments provided to the tool are invalid: Invalid input for tool " + name + ": Type validation failed", false
	case broken:
		text = x.output
	}
	return name, arguments, text, false
}

func opencodeCall(_ *world, x action) (name, arguments, text string) {
	switch x.verb {
	case reads:
		var b strings.Builder
		b.WriteString("<file>\n")
		for i, line := range strings.Split(x.output, "\n") {
			fmt.Fprintf(&b, "%05d| %s\n", x.offset+i+1, line)
		}
		b.WriteString("\n(End of file)\n</file>")
		if x.offset > 0 {
			return "read", object("filePath", folder+x.path, "offset", x.offset, "limit", 30), b.String()
		}
		return "read", object("filePath", folder+x.path), b.String()
	case writes:
		return "write", object("filePath", folder+x.path, "content", x.to), "Wrote file successfully."
	case edits:
		return "edit", object("filePath", folder+x.path, "oldString", x.from, "newString", x.to), "Edit applied successfully."
	case runs:
		return "bash", object("command", x.command, "description", "Runs "+strings.Fields(x.command)[0]), x.output
	case searches:
		return "grep", object("pattern", x.path), "Found 1 matches\n" + x.output
	case finds:
		return "glob", object("pattern", x.path), x.output
	case plans:
		return "todowrite", object("todos", []map[string]string{{"content": x.to, "status": "in_progress", "priority": "high"}}), `[{"content":` + quoted(x.to) + `,"status":"in_progress"}]`
	case fetches:
		return "webfetch", object("url", x.path, "format", "markdown"), x.output
	case polls:
		return "bash", object("command", "tail -n 20 /tmp/"+x.path+".log", "description", "Shows the log"), x.output
	case delegates:
		return "task", object("description", x.path[:min(len(x.path), 20)], "prompt", x.path, "subagent_type", "general"), "Done: " + x.path + "\n" + x.output
	case asksTracker:
		return "tracker_get_issue", object("number", x.path), x.output
	case asksServer:
		return x.server + "_" + x.tool, x.arguments, x.output
	}
	panic("a verb that no client knows")
}
