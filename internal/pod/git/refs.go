// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// RefUpdate moves one ref by compare-and-swap.
type RefUpdate struct {
	// Name in full, such as refs/tidewaiter/chain.
	Name string
	// Old is the value the ref must have; zero: it must not exist.
	Old objects.ID
	// New value; zero deletes the ref.
	New objects.ID
}

// UpdateRefs makes all of the updates or none. ErrRefMoved says that a ref did not have its old value. The updates survive a loss of power.
func (r *Repository) UpdateRefs(ctx context.Context, updates []RefUpdate) error {
	if len(updates) == 0 {
		return nil
	}
	var in strings.Builder
	in.WriteString("start\x00")
	for _, u := range updates {
		if err := checkName("ref", u.Name); err != nil {
			return err
		}
		if u.New.IsZero() {
			fmt.Fprintf(&in, "delete %s\x00%s\x00", u.Name, u.Old)
		} else {
			fmt.Fprintf(&in, "update %s\x00%s\x00%s\x00", u.Name, u.New, u.Old)
		}
	}
	in.WriteString("prepare\x00commit\x00")
	_, err := r.runner.run(ctx, call{args: []string{"update-ref", "--no-deref", "-z", "--stdin"}, stdin: strings.NewReader(in.String())})
	if _, exited := exitCode(err); exited && mentions(err.Error(), "but expected", "already exists", "unable to resolve reference", "reference is missing") {
		return fmt.Errorf("%w: %w", ErrRefMoved, err)
	}
	if err != nil {
		return fmt.Errorf("update refs: %w", err)
	}
	return nil
}

// Ref returns what a ref names; the zero ID when it does not exist.
func (r *Repository) Ref(ctx context.Context, name string) (objects.ID, error) {
	if err := checkName("ref", name); err != nil {
		return objects.ID{}, err
	}
	out, err := r.runner.run(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", name}})
	if code, exited := exitCode(err); exited && code == 1 {
		return objects.ID{}, nil
	}
	if err != nil {
		return objects.ID{}, fmt.Errorf("read ref %s: %w", name, err)
	}
	return objects.ParseID(strings.TrimSpace(string(out)))
}
