// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"strings"
	"time"
)

// claudeTool is a call as Claude Code has it, and its result in the words that it uses.
func claudeTool(w *world, x action) (name, arguments, text string, failed bool) {
	name, arguments, text = claudeCall(w, x)
	said := func(t string) string { return "<tool_use_error>" + t + "</tool_use_error>" }
	switch x.ending {
	case fine:
		return name, arguments, text, false
	case exited:
		if x.verb == searches || x.verb == finds {
			return name, arguments, "No matches found", false
		}
		if x.verb == fetches {
			return name, arguments, "Request failed with status code 503", true
		}
		return name, arguments, fmt.Sprintf("Exit code %d\n%s", x.code, x.output), true
	case missing:
		if x.verb == runs {
			return name, arguments, "Exit code 127\n/bin/bash: line 1: " + strings.Fields(x.command)[0] + ": command not found", true
		}
		return name, arguments, said("File does not exist. Note: your current working directory is /workspace."), true
	case unmatched:
		return name, arguments, said("String to replace not found in file.\nString: " + x.from), true
	case unread:
		return name, arguments, said("File has not been read yet. Read it first before writing to it."), true
	case denied:
		return name, arguments, fmt.Sprintf("Permission to use %s has been denied.", name), true
	case timedOut:
		return name, arguments, "Exit code 143\nCommand timed out after 2m 0s\n" + x.output, true
	case malformed:
		return name, "{}", said("InputValidationError: " + name + " failed due to the following issue:\nThe required parameter `" + "file_path" + "` is missing"), true
	case broken:
		return name, arguments, "Error: " + x.output, true
	}
	panic("an ending that no client knows")
}

func claudeCall(w *world, x action) (name, arguments, text string) {
	switch x.verb {
	case reads:
		var b strings.Builder
		for i, line := range strings.Split(x.output, "\n") {
			fmt.Fprintf(&b, "%6d→%s\n", x.offset+i+1, line)
		}
		if x.offset > 0 {
			return "Read", object("file_path", folder+x.path, "offset", x.offset, "limit", 30), b.String()
		}
		return "Read", object("file_path", folder+x.path), b.String()
	case writes:
		return "Write", object("file_path", folder+x.path, "content", x.to), "File created successfully at: " + folder + x.path
	case edits:
		return "Edit", object("replace_all", false, "file_path", folder+x.path, "old_string", x.from, "new_string", x.to), "The file " + folder + x.path + " has been updated successfully."
	case runs:
		text = x.output
		if text == "" {
			text = "(Bash completed with no output)"
		}
		return "Bash", object("command", x.command, "description", "Run "+strings.Fields(x.command)[0]), text
	case searches:
		return "Grep", object("pattern", x.path, "output_mode", "content"), x.output
	case finds:
		return "Glob", object("pattern", x.path), x.output
	case plans:
		return "TodoWrite", object("todos", []map[string]string{{"content": x.to, "status": "in_progress", "activeForm": x.to}}), "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress."
	case fetches:
		return "WebFetch", object("url", x.path, "prompt", "What does it say?"), x.output
	case polls:
		return "BashOutput", object("bash_id", x.path), "<status>running</status>\n\n<stdout>\n" + x.output + "\n</stdout>\n\n<timestamp>" + w.now.Format(time.RFC3339Nano) + "</timestamp>"
	case delegates:
		return "Task", object("description", x.path[:min(len(x.path), 20)], "prompt", x.path, "subagent_type", "general-purpose"), "Done: " + x.path + "\n" + x.output
	case asksTracker:
		return "mcp__tracker__get_issue", object("number", x.path), x.output
	case asksServer:
		return "mcp__" + x.server + "__" + x.tool, x.arguments, x.output
	}
	panic("a verb that no client knows")
}
