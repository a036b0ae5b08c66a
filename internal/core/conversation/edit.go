// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"bytes"
	"strings"

	json "github.com/go-json-experiment/json/v1"
)

// Edit is the text that a call removes from a file and the text that it inserts, as digests. Both are zero for a call that is not an edit.
// A call that writes a whole file may still have a path.
type Edit struct {
	Path           string
	Removed, Added Digest
}

// Edits says whether it is one.
func (e Edit) Edits() bool { return e.Removed != (Digest{}) || e.Added != (Digest{}) }

// Reverses says whether it takes back another.
func (e Edit) Reverses(other Edit) bool {
	return e.Edits() && e.Path == other.Path && e.Removed == other.Added && e.Added == other.Removed
}

// EditOf a call's arguments: a text that replaces another, as Claude Code and opencode have it, or a patch, as Codex and the watchdog's
// tools have it. Of a patch, Path is that of its first file.
func EditOf(arguments []byte) Edit {
	var a struct {
		FilePath  string  `json:"file_path"`
		FilePath2 string  `json:"filePath"`
		Path      string  `json:"path"`
		Old       *string `json:"old_string"`
		Old2      *string `json:"oldString"`
		New       *string `json:"new_string"`
		New2      *string `json:"newString"`
		Patch     string  `json:"patch"`
		Patch2    string  `json:"patchText"`
		Input     string  `json:"input"`
		Content   *string `json:"content"`
	}
	if !editing(arguments) {
		return Edit{}
	}
	text := string(arguments)
	if json.Unmarshal(arguments, &a) == nil {
		path, before, after := first(a.FilePath, a.FilePath2, a.Path), firstOf(a.Old, a.Old2), firstOf(a.New, a.New2)
		if before != nil && after != nil {
			return Edit{path, QuoteOf(*before).Digest, QuoteOf(*after).Digest}
		}
		if a.Content != nil {
			return Edit{Path: path}
		}
		text = first(a.Patch, a.Patch2, a.Input)
	}
	return patched(text)
}

// editing says whether arguments may belong to an edit: an object without any of an edit's members, in any letter case, does not. Most calls
// have such an object.
func editing(arguments []byte) bool {
	if len(arguments) > maxPlain || len(arguments) == 0 || arguments[0] != '{' || bytes.IndexByte(arguments, '\\') >= 0 {
		return true
	}
	lower := bytes.ToLower(arguments)
	for _, word := range []string{"old", "patch", "input"} {
		if bytes.Contains(lower, []byte(word)) {
			return true
		}
	}
	return false
}

// maxPlain is the size of arguments, in bytes, up to which they are looked at before they are read.
const maxPlain = 512

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func firstOf(texts ...*string) *string {
	for _, t := range texts {
		if t != nil {
			return t
		}
	}
	return nil
}

// patched reads what a patch takes out and puts in: unified, or in the format of apply_patch.
func patched(text string) Edit {
	if !strings.HasPrefix(text, "*** Begin Patch") && !strings.HasPrefix(text, "diff --git ") && !strings.HasPrefix(text, "--- ") {
		return Edit{}
	}
	var e Edit
	var removed, added []byte
	for line := range strings.Lines(text) {
		switch name, file := strings.CutPrefix(line, "*** Update File: "); {
		case file:
			e.Path = first(e.Path, strings.TrimSpace(name))
		case strings.HasPrefix(line, "*** Add File: "):
			e.Path = first(e.Path, strings.TrimSpace(line[len("*** Add File: "):]))
		case strings.HasPrefix(line, "+++ "):
			e.Path = first(e.Path, strings.TrimSpace(strings.TrimPrefix(line[4:], "b/")))
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "***"):
		case strings.HasPrefix(line, "-"):
			removed = append(removed, line[1:]...)
		case strings.HasPrefix(line, "+"):
			added = append(added, line[1:]...)
		}
	}
	if len(removed)+len(added) > 0 {
		e.Removed, e.Added = Sum(removed), Sum(added)
	}
	return e
}
