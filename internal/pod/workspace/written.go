// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Written returns files and links that changed since the last capture began, as far as the watcher saw and at most limit of them. They are
// changes from the base with unchecked content. Written omits a file with an unchanged size. The result is only a hint. The result whole
// says whether these are all: there may be more than limit. The error is ErrBusy while the engine does something else.
func (e *Engine) Written(ctx context.Context, limit int) (changes []judge.Change, whole bool, err error) {
	if !e.mu.TryLock() {
		return nil, false, ErrBusy
	}
	defer e.mu.Unlock()
	if e.closed || e.base == nil {
		return nil, false, nil
	}
	var news []git.Candidate
	paths := e.watcher.peek(limit)
	whole = len(paths) < limit
	for _, path := range paths {
		c, ok := writtenPath(e.root, e.base, path)
		if !ok {
			continue
		}
		changes = append(changes, c)
		if c.Kind == judge.Added {
			news = append(news, git.Candidate{Path: path})
		}
	}
	if len(news) == 0 {
		return changes, whole, nil
	}
	ignored, err := e.ignore.Match(ctx, news)
	if err != nil {
		return nil, false, fmt.Errorf("tell ignored files: %w", err)
	}
	drop := make(map[string]bool)
	for i, n := range news {
		drop[n.Path] = ignored[i]
	}
	return slices.DeleteFunc(changes, func(c judge.Change) bool { return drop[c.Path] }), whole, nil
}

// writtenPath is the change of a path since the base; false if no tree would show it.
func writtenPath(root dir, base *objects.Tree, path string) (judge.Change, bool) {
	c := judge.Change{Path: path, Kind: judge.Modified}
	before := base.Lookup(path)
	if before != nil {
		if before.Mode == objects.ModeTree || before.Mode == objects.ModeGitlink {
			return c, false
		}
		c.Old = judge.Entry{Mode: before.Mode, ID: before.ID.String(), Size: before.Size}
	}
	fd, err := root.open(path, unix.O_PATH, 0)
	if err == nil {
		defer dir{fd}.close()
		sig, err := fstat(fd)
		switch {
		case err != nil:
			return c, false
		case sig.kind() == unix.S_IFLNK:
			c.New.Mode = objects.ModeSymlink
		case before != nil && before.Mode != objects.ModeSymlink && sig.isRegular() && sig.size == before.Size:
			return c, false // it may be as it was, touched or put back: the next capture knows
		case sig.isRegular():
			c.New.Mode = objects.ModeFile
		default:
			return c, false
		}
	}
	switch {
	case err != nil && !vanished(err), c.Old.Mode == 0 && c.New.Mode == 0:
		return c, false
	case c.Old.Mode == 0:
		c.Kind = judge.Added
	case c.New.Mode == 0:
		c.Kind = judge.Deleted
	}
	return c, true
}
