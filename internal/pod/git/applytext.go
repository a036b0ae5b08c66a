// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// claim is what a patch says of one file. It is empty-named where the file does not exist on that side.
type claim struct {
	old, new string
	// oldMode and newMode as Git stores them; 0 where the patch does not say.
	oldMode, newMode uint32
	copied           bool
	hunks            []*gitdiff.TextFragment
}

// path is the one to name in messages.
func (c *claim) path() string {
	if c.new != "" {
		return c.new
	}
	return c.old
}

// touches are the paths that the claim changes.
func (c *claim) touches() []string {
	var paths []string
	if c.old != "" && !c.copied {
		paths = append(paths, c.old)
	}
	if c.new != "" && c.new != c.old {
		paths = append(paths, c.new)
	}
	return paths
}

func (c *claim) refuse(reason string) error { return &PatchError{Path: c.path(), Reason: reason} }

// readPatch reads a patch twice, and gives what both readings agree on.
func readPatch(text string) ([]claim, error) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	sections, err := outlinePatch(text)
	if err != nil {
		return nil, err
	}
	files, _, err := gitdiff.Parse(strings.NewReader(text))
	if err != nil {
		return nil, &PatchError{Reason: strings.TrimPrefix(err.Error(), "gitdiff: ")}
	}
	if len(files) != len(sections) {
		return nil, &PatchError{Reason: fmt.Sprintf("it is read as %d files and as %d: write plain sections that begin with 'diff --git'",
			len(files), len(sections))}
	}
	claims := make([]claim, 0, len(files))
	for i, f := range files {
		c, err := claimOf(f)
		if err == nil {
			err = sections[i].agrees(&c, f)
		}
		if err != nil {
			return nil, err
		}
		claims = append(claims, c)
	}
	return claims, nil
}

// claimOf takes what the parser found, as far as a patch may say it.
func claimOf(f *gitdiff.File) (claim, error) {
	c := claim{old: f.OldName, new: f.NewName, copied: f.IsCopy, hunks: f.TextFragments}
	if f.IsNew {
		c.old = ""
	}
	if f.IsDelete {
		c.new = ""
	}
	if reason := contradiction(&c, f); reason != "" {
		return c, c.refuse(reason)
	}
	var err error
	if c.oldMode, err = modeOf(&c, f.OldMode); err != nil {
		return c, err
	}
	if c.newMode, err = modeOf(&c, f.NewMode); err != nil {
		return c, err
	}
	if c.old == "" && c.newMode == 0 {
		return c, c.refuse("a new file needs the line 'new file mode 100644'")
	}
	for _, path := range []string{c.old, c.new} {
		if path != "" {
			if err := checkPatchPath(path); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// contradiction says why a header cannot be followed; empty where it can.
func contradiction(c *claim, f *gitdiff.File) string {
	switch {
	case f.IsBinary || f.BinaryFragment != nil:
		return "it is a binary patch: only text can be patched"
	case f.IsNew && f.IsDelete, f.IsCopy && f.IsRename, (f.IsNew || f.IsDelete) && (f.IsCopy || f.IsRename):
		return "its header says two things at once"
	case c.old == os.DevNull || c.new == os.DevNull:
		return "/dev/null needs the line 'new file mode 100644' or 'deleted file mode 100644' above it"
	case c.old == "" && c.new == "":
		return "a section names no file"
	case c.old != c.new && c.old != "" && c.new != "" && !f.IsCopy && !f.IsRename:
		return "the names before and after differ: a rename needs the lines 'rename from' and 'rename to'"
	}
	return ""
}

// modeOf is a mode that a patch may name; 0 for none.
func modeOf(c *claim, m os.FileMode) (uint32, error) {
	switch mode := uint32(m); mode {
	case 0, objects.ModeFile, objects.ModeExecutable, objects.ModeSymlink:
		return mode, nil
	default:
		return 0, c.refuse(fmt.Sprintf("mode %o is not one of 100644, 100755 and 120000", mode))
	}
}

// checkPatchPath refuses anything but a path below the root, whatever the rules say of names.
func checkPatchPath(path string) error {
	if len(path) > maxPatchPath || strings.ContainsRune(path, 0) {
		return &PatchError{Path: path[:min(len(path), maxPatchPath)], Reason: "it is not a path"}
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "", name == ".", name == "..":
			return &PatchError{Path: path, Reason: "it is not a path below the root: absolute paths, '.' and '..' are refused"}
		case strings.EqualFold(name, ".git"):
			return &PatchError{Path: path, Reason: "no patch may touch a .git"}
		}
	}
	return nil
}

// result applies the claim's hunks to a file's content.
func (c *claim) result(before []byte) ([]byte, error) {
	if len(c.hunks) == 0 {
		return before, nil
	}
	var after bytes.Buffer
	err := gitdiff.Apply(&after, bytes.NewReader(before), &gitdiff.File{TextFragments: c.hunks})
	if err == nil {
		return after.Bytes(), nil
	}
	var at *gitdiff.ApplyError
	if errors.As(err, &at) && at.Line > 0 {
		return nil, c.refuse(fmt.Sprintf("hunk %d does not match the file at its line %d (%v): read the file again and use its lines and line numbers exactly",
			max(at.Fragment, 1), at.Line, err))
	}
	return nil, c.refuse(fmt.Sprintf("%v: read the file again and use its lines and line numbers exactly", err))
}
