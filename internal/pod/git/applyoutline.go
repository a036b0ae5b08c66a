// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// section is the outline of one file of a patch, read without go-gitdiff. It knows less and is stricter: a line that is
// neither a known header nor inside of a hunk is refused, so that nothing can be hidden between two files.
type section struct {
	// line where it begins, from 1, and what follows "diff --git ".
	line  int
	names string

	hunks, added, deleted int
}

const sectionPrefix = "diff --git "

// hunkHeader is what begins a hunk: where and how many lines before and after.
var hunkHeader = regexp.MustCompile(`^@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@`)

// headerPrefixes are the header lines that a section may have.
func headerPrefixes() []string {
	return []string{"--- ", "+++ ", "old mode ", "new mode ", "deleted file mode ", "new file mode ", "copy from ", "copy to ",
		"rename from ", "rename to ", "similarity index ", "dissimilarity index ", "index "}
}

// outliner walks over the lines of a patch.
type outliner struct {
	sections []section
	hunks    int
	// before and after are the lines that the hunk at hand still announces.
	before, after int
}

// outlinePatch finds the sections of a patch.
func outlinePatch(text string) ([]section, error) {
	var o outliner
	n := 0
	for line := range strings.Lines(text) {
		n++
		if reason := o.take(n, strings.TrimSuffix(line, "\n")); reason != "" {
			return nil, &PatchError{Reason: fmt.Sprintf("line %d: %s", n, reason)}
		}
	}
	switch {
	case len(o.sections) == 0:
		return nil, &PatchError{Reason: "it is empty: a patch has sections that begin with 'diff --git a/PATH b/PATH'"}
	case o.before > 0 || o.after > 0:
		return nil, &PatchError{Reason: fmt.Sprintf("it ends in the middle of a hunk, which announces %d more lines before and %d after", o.before, o.after)}
	}
	return o.sections, nil
}

// take reads one line, and says what is wrong with it.
func (o *outliner) take(n int, line string) string {
	if o.before > 0 || o.after > 0 {
		return o.inHunk(line)
	}
	switch {
	case strings.HasPrefix(line, sectionPrefix):
		if len(o.sections) == maxPatchFiles {
			return fmt.Sprintf("the patch has more than %d files: split it", maxPatchFiles)
		}
		o.sections = append(o.sections, section{line: n, names: line[len(sectionPrefix):]})
	case line == "":
	case len(o.sections) == 0:
		return "a patch begins with 'diff --git a/PATH b/PATH'"
	case strings.HasPrefix(line, "@@"):
		return o.hunk(line)
	case strings.HasPrefix(line, `\ `): // no newline at the end of the file
	case strings.HasPrefix(line, "Binary files "), line == "GIT binary patch":
		return "only text can be patched"
	default:
		if !o.header(line) {
			return "it is neither a header nor inside of a hunk; hunk headers must count their lines exactly"
		}
	}
	return ""
}

// header tells whether a line is one that may stand between a section's beginning and its first hunk.
func (o *outliner) header(line string) bool {
	if o.sections[len(o.sections)-1].hunks > 0 {
		return false
	}
	for _, prefix := range headerPrefixes() {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

func (o *outliner) hunk(line string) string {
	m := hunkHeader.FindStringSubmatch(line)
	if m == nil {
		return "a hunk header is '@@ -LINE,COUNT +LINE,COUNT @@'"
	}
	if o.hunks++; o.hunks > maxPatchHunks {
		return fmt.Sprintf("the patch has more than %d hunks: split it", maxPatchHunks)
	}
	o.sections[len(o.sections)-1].hunks++
	o.before, o.after = count(m[2]), count(m[4])
	if at, _ := strconv.Atoi(m[1]); o.before == 0 && at > 0 {
		// Git puts it behind the line, go-gitdiff before it.
		return "a hunk that only adds lines to a file needs a line of context"
	}
	return ""
}

// count of a range; it is 1 where the header leaves it out.
func count(text string) int {
	if text == "" {
		return 1
	}
	n, _ := strconv.Atoi(text) // at most nine digits
	return n
}

func (o *outliner) inHunk(line string) string {
	s := &o.sections[len(o.sections)-1]
	switch {
	case line == "", line[0] == ' ':
		o.before--
		o.after--
	case line[0] == '-':
		o.before--
		s.deleted++
	case line[0] == '+':
		o.after--
		s.added++
	case line[0] != '\\':
		return "a line of a hunk begins with ' ', '-' or '+'; the hunk header announces more lines than there are"
	}
	if o.before < 0 || o.after < 0 {
		return "the hunk has more lines than its header announces"
	}
	return ""
}

// agrees compares the outline of a section with what the parser made of it.
func (s *section) agrees(c *claim, f *gitdiff.File) error {
	added, deleted := 0, 0
	for _, h := range f.TextFragments {
		added += int(h.LinesAdded)
		deleted += int(h.LinesDeleted)
	}
	if len(f.TextFragments) != s.hunks || added != s.added || deleted != s.deleted {
		return c.refuse(fmt.Sprintf("the section at line %d is read in two ways (%d hunks, +%d -%d; %d hunks, +%d -%d)",
			s.line, s.hunks, s.added, s.deleted, len(f.TextFragments), added, deleted))
	}
	before, after := c.old, c.new
	if before == "" {
		before = after
	}
	if after == "" {
		after = before
	}
	for _, a := range spellings("a/" + before) {
		for _, b := range spellings("b/" + after) {
			if s.names == a+" "+b {
				return nil
			}
		}
	}
	return c.refuse(fmt.Sprintf("line %d must read 'diff --git a/%s b/%s', as the lines below it do", s.line, before, after))
}

// spellings are the ways in which Git writes a name: as it is, and in quotes with its own escapes.
func spellings(name string) []string {
	short := map[byte]string{'\a': `\a`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\v': `\v`, '\f': `\f`, '\r': `\r`, '"': `\"`, '\\': `\\`}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case short[c] != "":
			b.WriteString(short[c])
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return []string{name, b.String()}
}
