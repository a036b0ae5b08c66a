// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Aside reads a repository at low priority, next to other work on it. It is not safe for concurrent use.
type Aside struct {
	runner  runner
	objects *Objects
}

// NewAside reads a repository. Close ends what it has started.
func NewAside(r *Repository) *Aside { return &Aside{runner: r.runner, objects: r.MoreObjects()} }

// Close ends what it has started.
func (a *Aside) Close() error { return a.objects.Close() }

// Outline lists the first changes between two trees or commits, sorted as in the trees and at most the given number, and says how many there are.
func (a *Aside) Outline(ctx context.Context, from, to objects.ID, most int) (changes []judge.Change, total int, err error) {
	every := func(string) bool { return true }
	return a.outline(ctx, from, to, most, every, func(n int) int { return n - 1 })
}

// Sample is Outline with any of the changes of which the path counts, in any sequence. One draw gives a random number from 0 to below n: each change is as likely as any other,
// wherever it stands.
func (a *Aside) Sample(ctx context.Context, from, to objects.ID, most int, counts func(path string) bool, draw func(n int) int) (changes []judge.Change, total int, err error) {
	return a.outline(ctx, from, to, most, counts, draw)
}

// outline skips paths that do not count. It replaces, when the list is full, the change at the place that is drawn, if there is such a place.
func (a *Aside) outline(ctx context.Context, from, to objects.ID, most int, counts func(path string) bool, draw func(n int) int) (changes []judge.Change, total int, err error) {
	err = a.runner.pipe(ctx, call{args: diffArgs("--raw", "-z", "--no-abbrev", from.String(), to.String(), "--"), idle: true}, func(in *bufio.Reader) error {
		for {
			c, err := readChange(in)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if !counts(c.Path) {
				continue
			}
			if total++; len(changes) < most {
				changes = append(changes, c)
			} else if place := draw(total); place < most {
				changes[place] = c
			}
		}
	})
	if err == nil {
		err = a.objects.sizes(ctx, changes)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("compare %s and %s: %w", from, to, err)
	}
	return changes, total, nil
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

// Patch lets read consume the difference of two trees or commits in Git's unified format, with the whole IDs of files. Files above the
// given size only appear as changed. Git ends when read has enough. If there are paths, only these count, and nothing below folders of their names.
func (a *Aside) Patch(ctx context.Context, from, to objects.ID, limit int64, read func(*bufio.Reader) error, paths ...string) error {
	enough := false
	args := diffArgs("-p", "--full-index", from.String(), to.String(), "--")
	for _, p := range paths { // git takes a path for everything below it, too
		args = append(args, ":(literal)"+p, ":(exclude,literal)"+p+"/")
	}
	c := call{args: args, idle: true, settings: []setting{
		{"core.quotePath", "true"}, {"core.bigFileThreshold", strconv.FormatInt(limit+1, 10)},
	}}
	err := a.runner.pipe(ctx, c, func(in *bufio.Reader) error {
		err := read(in)
		enough = err == nil
		return err
	})
	if err != nil && !enough {
		return fmt.Errorf("compare %s and %s: %w", from, to, err)
	}
	return nil
}

// Content of a file. ErrTooLarge says that it has more than limit bytes.
func (a *Aside) Content(ctx context.Context, id objects.ID, limit int64) ([]byte, error) {
	_, size, err := a.objects.Stat(ctx, id)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, tooLarge(id, size, limit)
	}
	_, content, err := a.objects.Read(ctx, id, limit)
	return content, err
}
