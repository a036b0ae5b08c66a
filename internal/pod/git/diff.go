// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Diff returns every path that differs between two trees or commits, sorted by path, with sizes and link targets.
func (r *Repository) Diff(ctx context.Context, a, b objects.ID) ([]judge.Change, error) {
	before, err := r.Tree(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := r.Tree(ctx, b)
	if err != nil {
		return nil, err
	}
	return r.Changes(ctx, before, after)
}

// Changes is Diff for trees that are in memory.
func (r *Repository) Changes(ctx context.Context, before, after *objects.Tree) ([]judge.Change, error) {
	byPath := make(map[string]judge.Change)
	objects.Diff(before, after, func(path string, x, y *objects.Entry) {
		// A path may come twice: as a file on one side, and as a link or gitlink on the other.
		c := byPath[path]
		c.Path = path
		if x != nil {
			c.Old = entryOf(x)
		}
		if y != nil {
			c.New = entryOf(y)
		}
		byPath[path] = c
	})
	changes := make([]judge.Change, 0, len(byPath))
	for _, c := range byPath {
		c.Kind = kindOf(c.Old, c.New)
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(x, y judge.Change) int { return cmp.Compare(x.Path, y.Path) })
	return changes, r.objects.targets(ctx, changes)
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
