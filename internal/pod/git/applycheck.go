// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"fmt"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// change is one path that differs between the trees before and after.
type change struct{ before, after *objects.Entry }

// check compares what a patch claims with the trees before and after: every path that differs must be claimed, every
// claim must have come true, and every line must be where its hunk says.
func (p *patcher) check(claims []claim, tree *objects.Tree) error {
	changes := map[string]change{}
	objects.Diff(p.over, tree, func(path string, before, after *objects.Entry) {
		c := changes[path]
		if before != nil {
			c.before = before
		}
		if after != nil {
			c.after = after
		}
		changes[path] = c
	})
	for i := range claims {
		c := &claims[i]
		for _, path := range c.touches() {
			if err := p.checkPath(c, path, changes[path]); err != nil {
				return err
			}
			delete(changes, path)
		}
	}
	for path := range changes {
		return &PatchError{Path: path, Reason: "the patch would change it without saying so: a file and a directory want the same name"}
	}
	return nil
}

// checkPath compares one path of a claim with the result.
func (p *patcher) checkPath(c *claim, path string, is change) error {
	switch {
	case path != c.new:
		if is.before == nil || is.after != nil {
			return c.refuse("it should be gone and is not")
		}
		return nil
	case is.after == nil:
		return c.refuse("the patch changes nothing there")
	case (is.before == nil) != (c.new != c.old):
		return c.refuse("the patch says that it is new, or that it is not, and the tree disagrees")
	case c.newMode != 0 && is.after.Mode != c.newMode:
		return c.refuse(fmt.Sprintf("its mode is %o and not %o", is.after.Mode, c.newMode))
	}
	var before []byte
	if c.old != "" {
		have := p.over.Lookup(c.old)
		if c.newMode == 0 && is.after.Mode != have.Mode {
			return c.refuse("its mode changed without the patch saying so")
		}
		var err error
		if before, err = p.read(have.ID); err != nil {
			return fmt.Errorf("read what was patched: %w", err)
		}
	}
	after, made := p.fresh[is.after.ID]
	if !made || objects.Hash(objects.KindBlob, after) != is.after.ID {
		return c.refuse("its content is not what the patch makes")
	}
	return checkLines(c, before, after)
}

// checkLines walks over a file before and after: between hunks the lines are the same, and in a hunk they are what it
// lists, at the lines where it says.
func checkLines(c *claim, before, after []byte) error {
	b, a := lineWalk{rest: before}, lineWalk{rest: after}
	for i, h := range c.hunks {
		for b.line+1 < begin(h.OldPosition, h.OldLines) {
			if x := b.next(); x == nil || !bytes.Equal(x, a.next()) {
				return c.refuse(fmt.Sprintf("line %d changed outside of every hunk, or is not there", b.line))
			}
		}
		if a.line+1 != begin(h.NewPosition, h.NewLines) {
			return c.refuse(fmt.Sprintf("hunk %d says that it begins at line %d of the new file, and it is line %d. Fix the numbers after '+' in its header",
				i+1, h.NewPosition, newPosition(a.line, h.NewLines)))
		}
		for _, line := range h.Lines {
			if line.Op != gitdiff.OpAdd && string(b.next()) != line.Line || line.Op != gitdiff.OpDelete && string(a.next()) != line.Line {
				return c.refuse(fmt.Sprintf("hunk %d does not say what happens to line %d", i+1, b.line))
			}
		}
	}
	if !bytes.Equal(b.rest, a.rest) {
		return c.refuse("lines after the last hunk changed")
	}
	return nil
}

// begin is the first line of a range: a header names the line before it where it has none.
func begin(position, lines int64) int64 {
	if lines == 0 {
		return position + 1
	}
	return position
}

// newPosition is what a header should say after the given number of lines.
func newPosition(done, lines int64) int64 {
	if lines == 0 {
		return done
	}
	return done + 1
}

// lineWalk takes a text line by line.
type lineWalk struct {
	rest []byte
	// line is the number of lines taken.
	line int64
}

// next is the next line with its newline; nil at the end.
func (w *lineWalk) next() []byte {
	if len(w.rest) == 0 {
		return nil
	}
	n := bytes.IndexByte(w.rest, '\n') + 1
	if n == 0 {
		n = len(w.rest)
	}
	line := w.rest[:n]
	w.rest = w.rest[n:]
	w.line++
	return line
}
