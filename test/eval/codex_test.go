// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"slices"
	"strings"
)

// codex is Codex 0.169.
func codex() client {
	return client{
		name: "codex", dialect: "openai-responses",
		lead: func() []*entry {
			return []*entry{
				{role: "system", text: "<permissions instructions>Everything is allowed in the folder.</permissions instructions>"},
				{role: "user", text: "# AGENTS.md instructions for /workspace\n\nRun make test before you end."},
				{role: "user", text: "<environment_context>\n  <cwd>/workspace</cwd>\n  <shell>bash</shell>\n</environment_context>"},
			}
		},
		system: func(role string) string {
			if role == "title" {
				return "Write a title of a few words."
			}
			return "You are a coding agent that runs in a terminal."
		},
		body: codexBody, stream: codexStream, whole: codexWhole, tool: codexTool, compact: codexCompact,
	}
}

// items of the input that an entry is.
func drawCodex(w *world, e *entry) string {
	if e.drawn != "" {
		return e.drawn
	}
	var items []string
	switch {
	case e.role == "model":
		items = append(items, object("type", "reasoning", "summary", []string{}, "content", nil, "encrypted_content", w.id("enc")))
		if e.text != "" {
			items = append(items, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+quoted(e.text)+"}]}")
		}
	case e.text != "":
		role := map[string]string{"system": "developer", "user": "user"}[e.role]
		items = append(items, `{"type":"message","role":"`+role+`","content":[{"type":"input_text","text":`+quoted(e.text)+"}]}")
	}
	for _, c := range e.calls {
		if c.name == "apply_patch" {
			items = append(items, object("type", "custom_tool_call", "status", "completed", "call_id", c.id, "name", c.name, "input", c.arguments))
		} else {
			items = append(items, object("type", "function_call", "name", c.name, "arguments", c.arguments, "call_id", c.id))
		}
	}
	for _, r := range e.results {
		kind := "function_call_output"
		if strings.HasPrefix(r.text, "Exit code: ") || strings.HasPrefix(r.text, "apply_patch ") {
			kind = "custom_tool_call_output"
		}
		var output any = r.text
		if r.image != "" {
			output = []map[string]string{{"type": "input_image", "image_url": "data:image/png;base64," + r.image}}
		}
		items = append(items, object("type", kind, "call_id", r.id, "output", output))
	}
	e.drawn = strings.Join(items, ",")
	return e.drawn
}

func codexBody(w *world, t *talk) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-5.2-codex","instructions":` + quoted(t.system) + `,"input":[`)
	for i, e := range t.entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(drawCodex(w, e))
	}
	b.WriteString(`],"tools":[`)
	if t.tools {
		for i, name := range append([]string{"exec_command", "write_stdin", "update_plan", "view_image", "spawn_agent", "wait", "tracker__get_issue"}, t.servers...) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"type":"function","name":"` + name + `","strict":false,"parameters":{"type":"object"}}`)
		}
		b.WriteString(`,{"type":"custom","name":"apply_patch","format":{"type":"grammar"}}`)
	}
	b.WriteString(`],"tool_choice":"auto","parallel_tool_calls":false,"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"a"}`)
	return []byte(b.String())
}

func codexStream(w *world, s said) []byte {
	var b strings.Builder
	id := w.id("resp")
	event(&b, "response.created", `{"type":"response.created","response":{"id":"`+id+`","object":"response","model":"gpt-5.2-codex","status":"in_progress","output":[]}}`)
	if s.text != "" {
		for _, part := range s.parts() {
			event(&b, "response.output_text.delta", `{"type":"response.output_text.delta","delta":`+quoted(part)+"}")
		}
		if s.half {
			return []byte(b.String())
		}
		event(&b, "response.output_item.done", `{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+quoted(s.text)+"}]}}")
	}
	for _, c := range s.calls {
		event(&b, "response.output_item.done", `{"type":"response.output_item.done","item":`+codexItem(c)+"}")
	}
	event(&b, "response.completed", fmt.Sprintf(`{"type":"response.completed","response":{"id":%q,"object":"response","model":"gpt-5.2-codex","status":"completed","output":[],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d}}}`,
		id, s.usage, s.usage*9/10, 20+len(s.text)/4))
	return []byte(b.String())
}

// codexItem is a call as an item of an answer.
func codexItem(c call) string {
	if c.name == "apply_patch" {
		return object("type", "custom_tool_call", "call_id", c.id, "name", c.name, "input", c.arguments)
	}
	return object("type", "function_call", "call_id", c.id, "name", c.name, "arguments", c.arguments)
}

func codexWhole(w *world, s said) []byte {
	var items []string
	if s.text != "" {
		items = append(items, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+quoted(s.text)+"}]}")
	}
	for _, c := range s.calls {
		items = append(items, codexItem(c))
	}
	return []byte(fmt.Sprintf(`{"id":%q,"object":"response","model":"gpt-5.2-codex","status":"completed","output":[%s],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d}}`,
		w.id("resp"), strings.Join(items, ","), s.usage, s.usage*9/10, 20+len(s.text)/4))
}

// codexCompact asks for a summary without tools; what people have said stays.
func codexCompact(a *agent, summary string) {
	t := *a.talk
	t.tools = false
	t.entries = append(slices.Clip(t.entries), &entry{role: "user", text: "You write a handoff summary of the work for another model."})
	b := &agent{w: a.w, talk: &t, latency: a.latency}
	b.ask(true)
	b.answer(said{text: summary})
	next := slices.Clone(a.entries[:3])
	for _, e := range a.entries[3:] {
		if e.role == "user" && e.text != "" && len(e.results) == 0 {
			next = append(next, e)
		}
	}
	next = append(next, &entry{role: "user", text: "Another model began this work and wrote a summary:\n" + summary})
	a.entries = next
}

func codexTool(w *world, x action) (name, arguments, text string, failed bool) {
	name, arguments, text = codexCall(w, x)
	ran := func(code int, output string) string {
		return fmt.Sprintf("Chunk ID: %06x\nWall time: %.4f seconds\nProcess exited with code %d\nOriginal token count: %d\nOutput:\n%s", w.random.IntN(1<<24), x.took.Seconds(), code, len(output)/4, output)
	}
	if name != "exec_command" && x.ending == fine {
		return name, arguments, text, false
	}
	switch x.ending {
	case fine:
		return name, arguments, ran(0, text), false
	case exited:
		code, output := x.code, x.output
		switch x.verb {
		case searches, finds:
			code, output = 1, ""
		case fetches:
			code, output = 22, "curl: (22) The requested URL returned error: 503"
		}
		if name != "exec_command" {
			return name, arguments, output, false
		}
		return name, arguments, ran(code, output), false
	case missing:
		if x.verb == runs {
			return name, arguments, ran(127, "/bin/bash: line 1: "+strings.Fields(x.command)[0]+": command not found"), false
		}
		if x.verb == edits {
			return name, arguments, "apply_patch verification failed: Failed to read file to update " + folder + x.path + ": No such file or directory (os error 2)", false
		}
		return name, arguments, ran(2, "sed: can't read "+x.path+": No such file or directory"), false
	case unmatched, unread:
		return name, arguments, "apply_patch verification failed: Failed to find expected lines in " + folder + x.path + ":\n" + x.from, false
	case denied:
		if name == "exec_command" {
			return name, arguments, "exec_command failed for `/bin/bash -lc '" + x.command + "'`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }", false
		}
		if x.verb == asksServer {
			return name, arguments, "user rejected MCP tool call", false
		}
		return name, arguments, "patch rejected: writing outside of the project; rejected by user approval settings", false
	case timedOut:
		return name, arguments, ran(124, "command timed out after 120000 milliseconds\n"+x.output), false
	case malformed:
		return name, "{}", "failed to parse function arguments: missing field `cmd` at line 1 column 2", false
	case broken:
		if name == "exec_command" {
			return name, arguments, ran(1, x.output), false
		}
		return name, arguments, x.output, false
	}
	panic("an ending that no client knows")
}

func codexCall(w *world, x action) (name, arguments, text string) {
	shell := func(command string) string {
		return object("cmd", command, "workdir", strings.TrimSuffix(folder, "/"), "yield_time_ms", 10000, "max_output_tokens", 6000)
	}
	const patched = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n"
	switch x.verb {
	case reads:
		if x.image != "" {
			return "view_image", object("path", folder+x.path), ""
		}
		return "exec_command", shell(fmt.Sprintf("sed -n '%d,%dp' %s", x.offset+1, x.offset+30, x.path)), x.output
	case writes:
		return "apply_patch", "*** Begin Patch\n*** Add File: " + x.path + "\n+" + strings.ReplaceAll(x.to, "\n", "\n+") + "\n*** End Patch\n", patched + "A " + x.path + "\n"
	case edits:
		return "apply_patch", fmt.Sprintf("*** Begin Patch\n*** Update File: %s\n@@\n-%s\n+%s\n*** End Patch\n", x.path, x.from, x.to), patched + "M " + x.path + "\n"
	case runs:
		return "exec_command", shell(x.command), x.output
	case searches:
		return "exec_command", shell("rg -n '" + x.path + "'"), x.output
	case finds:
		return "exec_command", shell("rg --files -g '" + x.path + "'"), x.output
	case plans:
		return "update_plan", object("plan", []map[string]string{{"step": x.to, "status": "in_progress"}}), "Plan updated"
	case fetches:
		return "exec_command", shell("curl -sSf " + x.path), x.output
	case polls:
		text = fmt.Sprintf("Chunk ID: %06x\nWall time: %d.0%03d seconds\nProcess running with session ID %s\nOriginal token count: %d\nOutput:\n%s", w.random.IntN(1<<24), int(x.took.Seconds()), w.random.IntN(1000), x.path, len(x.output)/4, x.output)
		return "write_stdin", fmt.Sprintf(`{"session_id":%s,"chars":"","yield_time_ms":5000}`, x.path), text
	case delegates:
		return "spawn_agent", object("message", x.path), "Done: " + x.path + "\n" + x.output
	case asksTracker:
		return "tracker__get_issue", object("number", x.path), x.output
	case asksServer:
		return x.server + "__" + x.tool, x.arguments, x.output
	}
	panic("a verb that no client knows")
}
