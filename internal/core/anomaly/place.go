// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"slices"
	"strings"
)

// maxFile is how much of a path is quoted, in bytes. Its end says most.
const maxFile = 96

// file that a call reads or writes, as findings name it; "" where it says none. A search is at no file.
func (a arguments) file() string {
	switch {
	case a.command != "" && !a.call.Edit.Edits():
		return path(shows(a.command))
	case a.writes(), has(a.tool, "read", "view", "open"):
		return path(a.named())
	}
	return ""
}

// path as findings quote it. Paths are the agent's: what is left of one has no spaces, and cannot end a sentence or begin one.
func path(text string) string {
	cut := len(text) > maxFile
	out := []byte(text[max(0, len(text)-maxFile):])
	for i, c := range out {
		if c != '/' && c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			out[i] = '_'
		}
	}
	if i := slices.Index(out, '/'); cut && i >= 0 {
		out = out[i+1:]
	}
	return strings.Trim(string(out), ".")
}

// shows is the file that a command shows, as cat and sed do; "" where it is another one.
func shows(command string) string {
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return r == ';' || r == '&' || r == '|' || r == '\n' }) {
		words := strings.Fields(part)
		if len(words) < 2 || !oneOf(words[0], "cat", "sed", "head", "tail", "nl", "less") {
			continue
		}
		if last := words[len(words)-1]; last[0] != '-' && strings.ContainsAny(last, "./") && !strings.ContainsAny(last, "'\"`$*?<>(){}") {
			return last
		}
	}
	return ""
}

// at says which task a stall is in, and at which file: users and the agent find the place by it. If no model answers, neither matters.
func (l look) at(f Finding) string {
	if f.Kind != AgentStalled || f.Detector == Provider {
		return f.Evidence
	}
	switch task, file := l.s.Task, l.t.File; {
	case task != "" && file != "":
		return fmt.Sprintf("%s; the task is %s, and the last file that was read or written is %s", f.Evidence, task, file)
	case task != "":
		return fmt.Sprintf("%s; the task is %s", f.Evidence, task)
	case file != "":
		return fmt.Sprintf("%s; the last file that was read or written is %s", f.Evidence, file)
	}
	return f.Evidence
}
