// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Diff returns every path that differs between two trees or commits, sorted by path, with sizes and link targets. Directories that are
// equal on both sides are not read.
func (r *Repository) Diff(ctx context.Context, a, b objects.ID) ([]judge.Change, error) {
	changes, err := r.diff(ctx, a, b)
	if err != nil {
		return nil, fmt.Errorf("compare %s and %s: %w", a, b, err)
	}
	return changes, nil
}

func (r *Repository) diff(ctx context.Context, a, b objects.ID) ([]judge.Change, error) {
	before, err := r.TreeOf(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := r.TreeOf(ctx, b)
	if err != nil {
		return nil, err
	}
	found := make(differences)
	if before != after {
		if err := r.objects.compare(ctx, before, after, found); err != nil {
			return nil, err
		}
	}
	changes := found.sorted()
	if err := r.objects.sizes(ctx, changes); err != nil {
		return nil, err
	}
	return changes, r.objects.targets(ctx, changes)
}

// pair is a directory that differs. A side is nil if there is no directory.
type pair struct {
	path          string // with its '/'; empty for the root
	before, after *objects.Tree
}

// compare reads two trees as far as they differ, one level of directories after the other: the process that runs already answers for a whole
// level at once.
func (o *Objects) compare(ctx context.Context, before, after objects.ID, found differences) error {
	level := []pair{{before: &objects.Tree{ID: before}, after: &objects.Tree{ID: after}}}
	for len(level) > 0 {
		var trees []*objects.Tree
		for _, p := range level {
			for _, tree := range []*objects.Tree{p.before, p.after} {
				if tree != nil {
					trees = append(trees, tree)
				}
			}
		}
		if err := o.readTrees(ctx, trees); err != nil {
			return err
		}
		var below []pair
		for _, p := range level {
			objects.DiffDirectory(p.path, p.before, p.after, found.add, func(path string, x, y *objects.Entry) {
				below = append(below, pair{path: path + "/", before: directory(x), after: directory(y)})
			})
		}
		level = below
	}
	return nil
}

// directory of an entry, still to be read; nil if it is none.
func directory(e *objects.Entry) *objects.Tree {
	if e == nil || e.Mode != objects.ModeTree {
		return nil
	}
	return &objects.Tree{ID: e.ID}
}

// Changes is Diff for trees that are in memory.
func (r *Repository) Changes(ctx context.Context, before, after *objects.Tree) ([]judge.Change, error) {
	found := make(differences)
	objects.Diff(before, after, found.add)
	changes := found.sorted()
	return changes, r.objects.targets(ctx, changes)
}

// differences by path.
type differences map[string]judge.Change

// add takes note of a path. It may come twice: as a file on one side, and as a link or gitlink on the other.
func (d differences) add(path string, before, after *objects.Entry) {
	c := d[path]
	c.Path = path
	if before != nil {
		c.Old = entryOf(before)
	}
	if after != nil {
		c.New = entryOf(after)
	}
	d[path] = c
}

func (d differences) sorted() []judge.Change {
	changes := make([]judge.Change, 0, len(d))
	for _, c := range d {
		c.Kind = kindOf(c.Old, c.New)
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(x, y judge.Change) int { return cmp.Compare(x.Path, y.Path) })
	return changes
}

func entryOf(e *objects.Entry) judge.Entry {
	return judge.Entry{Mode: e.Mode, ID: e.ID.String(), Size: e.Size}
}

// kindOf names a change; the executable bit alone is a modification.
func kindOf(before, after judge.Entry) judge.Kind {
	const typeMask = 0o170000
	switch {
	case before.Mode == 0:
		return judge.Added
	case after.Mode == 0:
		return judge.Deleted
	case before.Mode&typeMask != after.Mode&typeMask:
		return judge.TypeChanged
	default:
		return judge.Modified
	}
}
