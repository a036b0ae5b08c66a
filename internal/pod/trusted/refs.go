// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Move is a ref on its way from one commit to another, in hexadecimal; Old is empty if there is no such ref yet.
type Move struct{ Name, Old, New string }

// MoveRefs moves refs together by compare-and-swap, and skips refs that are already there. The error is ErrCorrupt if a ref is at neither commit.
func MoveRefs(ctx context.Context, repo *git.Repository, moves ...Move) error {
	var updates []git.RefUpdate
	for _, m := range moves {
		if m.Old == m.New {
			continue
		}
		now, err := repo.Ref(ctx, m.Name)
		if err != nil {
			return err
		}
		before, err := parseOptional(m.Old)
		if err != nil {
			return err
		}
		after, err := objects.ParseID(m.New)
		if err != nil {
			return err
		}
		switch now {
		case after:
		case before:
			updates = append(updates, git.RefUpdate{Name: m.Name, Old: before, New: after})
		default:
			return fmt.Errorf("%w: %s is %s, and the journal knows only %q and %q", ErrCorrupt, m.Name, now, m.Old, m.New)
		}
	}
	if len(updates) == 0 {
		return nil
	}
	return repo.UpdateRefs(ctx, updates)
}

// Ref is a ref with its commit by the journal; Commit is empty if there is none.
type Ref struct{ Name, Commit string }

// CheckRefs fails with ErrCorrupt if a ref differs from the journal.
func CheckRefs(ctx context.Context, repo *git.Repository, refs ...Ref) error {
	for _, r := range refs {
		have, err := repo.Ref(ctx, r.Name)
		if err != nil {
			return err
		}
		if have.String() != r.Commit && !(have.IsZero() && r.Commit == "") {
			return fmt.Errorf("%w: %s is %s, and the journal has %q", ErrCorrupt, r.Name, have, r.Commit)
		}
	}
	return nil
}

// parseOptional parses an id that may be empty.
func parseOptional(text string) (objects.ID, error) {
	if text == "" {
		return objects.ID{}, nil
	}
	return objects.ParseID(text)
}
