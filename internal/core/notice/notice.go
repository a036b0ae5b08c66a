// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notice makes the lines that the watchdog sends to an agent: what happened to its work and what it can do about it. A line is a
// JSON object with a type; an agent ignores lines of a type that it does not know.
package notice

import (
	"encoding/json"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Bounds of notices: a pipe holds 64 KiB, and a line waits for the agent to read it.
const (
	// MaxViolations and MaxFiles bound the lists of a notice; Kept is what a journal keeps of its line, in bytes.
	MaxViolations = 20
	MaxFiles      = 100
	Kept          = 4 << 10
)

// What was done about something, in the field action_taken.
const (
	none     = "none"
	reverted = "reverted"
	frozen   = "frozen"
)

// Line is a notice as it is sent, without a line break.
func Line(notice any) (string, error) {
	line, err := json.Marshal(notice)
	return string(line), err
}

// Violation is a broken rule as notices describe it.
type Violation struct {
	File       string `json:"file"`
	Constraint string `json:"constraint"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
}

func violations(list []protocol.Violation) []Violation {
	told := []Violation{}
	for _, v := range list[:min(len(list), MaxViolations)] {
		told = append(told, Violation{File: Path(v.Path), Constraint: v.Rule, Message: v.Message, Suggestion: v.Suggestion})
	}
	return told
}

// Path is the path itself if it is text, and escaped otherwise, because JSON has only text.
func Path(path string) string {
	if !json.Valid([]byte(`"`+path+`"`)) || path != strings.ToValidUTF8(path, "") {
		return judge.Escape(path)
	}
	return path
}

// Files are the paths of changes, as many as a notice lists.
func Files(changes []judge.Change) []string {
	files := []string{}
	for _, c := range changes[:min(len(changes), MaxFiles)] {
		files = append(files, Path(c.Path))
	}
	return files
}
