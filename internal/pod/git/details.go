// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxTarget bounds the target of a symbolic link that is read, in bytes: PATH_MAX, which Linux sets for a link itself.
const maxTarget = 4096

// details are what a list of changes does not say itself, and the objects that say it. They are read together: an agent
// decides how many there are, and one exchange with git for each costs more than everything else.
type details struct {
	entries []*judge.Entry
	ids     []objects.ID
}

// wanted finds the entries that need a detail.
func wanted(changes []judge.Change, want func(*judge.Entry) bool) (d details, err error) {
	for i := range changes {
		for _, e := range []*judge.Entry{&changes[i].Old, &changes[i].New} {
			if !want(e) {
				continue
			}
			id, err := objects.ParseID(e.ID)
			if err != nil {
				return d, fmt.Errorf("%q: %w", changes[i].Path, err)
			}
			d.entries, d.ids = append(d.entries, e), append(d.ids, id)
		}
	}
	return d, nil
}

// sizes adds the sizes of files and links. The commit of a submodule is in another repository.
func (o *Objects) sizes(ctx context.Context, changes []judge.Change) error {
	d, err := wanted(changes, func(e *judge.Entry) bool { return e.Mode != 0 && e.Mode != judge.ModeGitlink })
	if err != nil {
		return err
	}
	return o.measure(ctx, d)
}

func (o *Objects) measure(ctx context.Context, d details) error {
	var first error // of any number
	err := o.StatAll(ctx, d.ids, func(i int, _ objects.Kind, size int64, err error) {
		d.entries[i].Size = size
		if first == nil {
			first = err
		}
	})
	return errors.Join(err, first)
}

// targets adds where symbolic links point. A target that is too long for a link is left out: its size tells.
func (o *Objects) targets(ctx context.Context, changes []judge.Change) error {
	d, err := wanted(changes, func(e *judge.Entry) bool { return e.Mode == judge.ModeSymlink })
	if err != nil {
		return err
	}
	var first error // of any number
	var long details
	err = o.ReadAll(ctx, d.ids, maxTarget, func(i int, content []byte, err error) {
		switch {
		case errors.Is(err, ErrTooLarge):
			long.entries, long.ids = append(long.entries, d.entries[i]), append(long.ids, d.ids[i])
		case first == nil:
			first = err
		}
		d.entries[i].Target = string(content)
	})
	if err = errors.Join(err, first); err != nil {
		return fmt.Errorf("read the targets of links: %w", err)
	}
	return o.measure(ctx, long)
}
