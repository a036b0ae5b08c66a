// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Between lists what Diff does, at the cost of the difference: for trees that are not in memory and are looked at once.
func (r *Repository) Between(ctx context.Context, a, b objects.ID) ([]judge.Change, error) {
	var changes []judge.Change
	err := r.runner.pipe(ctx, call{args: diffArgs("--raw", "-z", "--no-abbrev", a.String(), b.String(), "--")}, func(in *bufio.Reader) error {
		for {
			c, err := readChange(in)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			changes = append(changes, c)
		}
	})
	if err == nil {
		err = r.objects.sizes(ctx, changes)
	}
	if err == nil {
		err = r.objects.targets(ctx, changes)
	}
	if err != nil {
		return nil, fmt.Errorf("compare %s and %s: %w", a, b, err)
	}
	slices.SortFunc(changes, func(x, y judge.Change) int { return cmp.Compare(x.Path, y.Path) })
	return changes, nil
}

// readChange reads ":<mode> <mode> <id> <id> <status>NUL<path>NUL".
func readChange(in *bufio.Reader) (judge.Change, error) {
	head, err := in.ReadString(0)
	if err != nil {
		return judge.Change{}, err
	}
	path, err := in.ReadString(0)
	if err != nil {
		return judge.Change{}, io.ErrUnexpectedEOF
	}
	fields := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(head, ":"), "\x00"))
	if len(fields) != 5 {
		return judge.Change{}, fmt.Errorf("difference %q", head)
	}
	c := judge.Change{Path: strings.TrimSuffix(path, "\x00")}
	for i, e := range []*judge.Entry{&c.Old, &c.New} {
		mode, err := strconv.ParseUint(fields[i], 8, 32)
		if err != nil {
			return c, fmt.Errorf("difference %q: %w", head, err)
		}
		if mode != 0 {
			e.Mode, e.ID = uint32(mode), fields[2+i]
		}
	}
	c.Kind = kindOf(c.Old, c.New)
	return c, nil
}
