// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// maxTarget bounds the target of a symbolic link that is read, in bytes: PATH_MAX, which Linux sets for a link itself.
const maxTarget = 4096

// Diff gives every path that differs between two trees or commits, sorted by path, with sizes and link targets.
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
		if err := r.target(ctx, &c.Old); err != nil {
			return nil, fmt.Errorf("link %q before: %w", c.Path, err)
		}
		if err := r.target(ctx, &c.New); err != nil {
			return nil, fmt.Errorf("link %q: %w", c.Path, err)
		}
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(x, y judge.Change) int { return cmp.Compare(x.Path, y.Path) })
	return changes, nil
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

// target reads where a symbolic link points. A target that is too long for a link is left out: its size tells.
func (r *Repository) target(ctx context.Context, e *judge.Entry) error {
	if e.Mode != judge.ModeSymlink {
		return nil
	}
	id, err := objects.ParseID(e.ID)
	if err != nil {
		return err
	}
	_, content, err := r.objects.Read(ctx, id, maxTarget)
	if errors.Is(err, ErrTooLarge) {
		_, e.Size, err = r.objects.Stat(ctx, id)
		return err
	}
	e.Target = string(content)
	return err
}
