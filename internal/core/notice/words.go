// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

const (
	// maxPoints bounds the broken rules and the paths that a text lists: an agent fixes a few at a time.
	maxPoints = 12
	// maxText bounds each part of a point, in bytes.
	maxText = 200
)

// Point is one broken rule in words.
type Point struct {
	Rule string `json:"rule"`
	Path string `json:"path,omitempty"`
	// Text says what is wrong and how it is fixed.
	Text string `json:"text"`
}

// point of a broken rule. Names are quoted: they are the agent's own words, and may say anything.
func point(v protocol.Violation) Point {
	path := plain.CutBytes(v.Path, maxText)
	var b strings.Builder
	b.WriteString("- ")
	if path != "" {
		b.WriteString(strconv.QuoteToASCII(path) + ", ")
	}
	fmt.Fprintf(&b, "rule %s: %s.", v.Rule, trimmed(v.Message, maxText))
	if v.Suggestion != "" {
		fmt.Fprintf(&b, " To fix it: %s.", trimmed(v.Suggestion, maxText))
	}
	return Point{Rule: v.Rule, Path: path, Text: b.String()}
}

// trimmed is a text that a full stop follows, in at most the given bytes.
func trimmed(text string, limit int) string {
	return strings.TrimRight(plain.CutBytes(text, limit), ".")
}

func points(list []protocol.Violation) (all []Point) {
	for _, v := range list {
		all = append(all, point(v))
	}
	return all
}

// lines of points; more are not among them.
func lines(list []Point, more int) string {
	var b strings.Builder
	for _, p := range list[:min(len(list), maxPoints)] {
		b.WriteString("\n" + p.Text)
	}
	if more += max(0, len(list)-maxPoints); more > 0 {
		fmt.Fprintf(&b, "\n- and %s.", plural(more, "more violation"))
	}
	return b.String()
}

// word of a checkpoint.
func (n Violations) word() Word {
	listed := points(n.told[:min(len(n.told), maxPoints)])
	w := Word{Checkpoint: n.CheckpointID, Severity: n.Severity, Points: listed, More: len(n.told) - len(listed), Critical: Critical(n.told)}
	if n.back != nil {
		w.Back = n.back.text(n.CheckpointID)
	}
	return w
}

// Back is what went back because of broken rules.
type Back struct {
	// Paths that went back, and how many changes stay.
	Paths []string
	Kept  int
}

// text of what went back; checkpoint is the name of the one that keeps it.
func (b Back) text(checkpoint string) string {
	stays := "Nothing else had changed."
	if b.Kept > 0 {
		stays = capital(plural(b.Kept, "other change")) + " of yours stayed as it was."
		if b.Kept > 1 {
			stays = capital(plural(b.Kept, "other change")) + " of yours stayed as they were."
		}
	}
	return fmt.Sprintf("Because of this, files went back to the last valid checkpoint: %s. %s Checkpoint %s keeps what went back. "+
		"The task is not done by that: look at a file before you edit it, and do the work again without breaking these rules.", quoted(b.Paths, len(b.Paths)), stays, checkpoint)
}

// quoted are the first of the given number of paths.
func quoted(paths []string, all int) string {
	var names []string
	for _, path := range paths[:min(len(paths), maxPoints)] {
		names = append(names, strconv.QuoteToASCII(plain.CutBytes(path, maxText)))
	}
	if more := all - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// text of one notice, given the earlier notice that the agent has; nil if it has none that holds.
func (w Word) text(before *Word) string {
	switch {
	case w.Fixed != "":
		return fmt.Sprintf("%s Checkpoint %s: the rules that were broken at checkpoint %s are fixed. There is nothing more to do about them.", steering.Tag, w.Checkpoint, w.Fixed)
	case len(w.Points) == 0:
		return steering.Tag + " " + w.Back
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s Checkpoint %s found %s of severity %s.", steering.Tag, w.Checkpoint, plural(len(w.Points)+w.More, "broken rule"), w.Severity)
	if before != nil {
		fmt.Fprintf(&b, " This replaces what the supervisor told you of checkpoint %s.", before.Checkpoint)
		if fixed := fixed(*before, w); fixed != "" {
			fmt.Fprintf(&b, " Fixed since: %s.", fixed)
		}
	}
	b.WriteString(lines(w.Points, w.More))
	if w.Back != "" {
		b.WriteString("\n" + w.Back)
	} else {
		b.WriteString("\nAll files are as you wrote them. Fix this now, then continue with your task.")
	}
	if len(w.Critical) > 0 {
		b.WriteString("\n" + acknowledge(w.Critical))
	}
	return b.String()
}

// fixed are the points of one notice that the newer one does not have. What it does not list it may have.
func fixed(before, now Word) string {
	if now.More > 0 {
		return ""
	}
	var names []string
	for _, p := range before.Points {
		if !has(now.Points, p) {
			names = append(names, strings.TrimPrefix(strconv.QuoteToASCII(p.Path)+" (rule "+p.Rule+")", `"" `))
		}
	}
	return strings.Join(slices.Compact(names), ", ")
}

// ahead warns of points that no checkpoint has seen.
func ahead(list []Point) string {
	return fmt.Sprintf("%s The next checkpoint will find %s in what you have written.%s\nFix this before then, and nothing comes of it.", steering.Tag, plural(len(list), "broken rule"), lines(list, 0))
}

// text is a user's rollback in words.
func (n Rollback) text() string {
	return "A user has put files of the workspace back. " + n.Message + ". Do not write the same again unless your task cannot be done without it, and look at a file before you edit it."
}
