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
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// diffArgs compare two trees by their content alone: no rename is guessed, no program is run, no attribute is read.
func diffArgs(more ...string) []string {
	return append([]string{"diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"}, more...)
}

// Touched is a path that differs between two trees.
type Touched struct {
	Path string
	Kind judge.Kind
	// Size of the file after the change, in bytes; 0 for what is no file.
	Size int64
}

// Touched gives every path that differs between two trees or commits, at the cost of the difference.
func (r *Repository) Touched(ctx context.Context, a, b objects.ID) ([]Touched, error) {
	var touched []Touched
	err := r.pipe(ctx, call{args: diffArgs("--raw", "-z", "--no-abbrev", a.String(), b.String(), "--")}, func(in *bufio.Reader) error {
		for {
			t, id, err := readRaw(in)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if !id.IsZero() {
				if _, t.Size, err = r.objects.Stat(ctx, id); err != nil {
					return err
				}
			}
			touched = append(touched, t)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("compare %s and %s: %w", a, b, err)
	}
	return touched, nil
}

// readRaw reads ":<mode> <mode> <id> <id> <status>NUL<path>NUL"; the ID is that of a file after the change.
func readRaw(in *bufio.Reader) (Touched, objects.ID, error) {
	head, err := in.ReadString(0)
	if err != nil {
		return Touched{}, objects.ID{}, err
	}
	path, err := in.ReadString(0)
	if err != nil {
		return Touched{}, objects.ID{}, io.ErrUnexpectedEOF
	}
	fields := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(head, ":"), "\x00"))
	if len(fields) != 5 {
		return Touched{}, objects.ID{}, fmt.Errorf("difference %q", head)
	}
	t := Touched{Path: strings.TrimSuffix(path, "\x00"), Kind: judge.Modified}
	switch fields[4] {
	case "A":
		t.Kind = judge.Added
	case "D":
		t.Kind = judge.Deleted
	case "T":
		t.Kind = judge.TypeChanged
	}
	mode, err := strconv.ParseUint(fields[1], 8, 32)
	if err != nil {
		return t, objects.ID{}, fmt.Errorf("difference %q: %w", head, err)
	}
	if mode == 0 || uint32(mode) == objects.ModeGitlink {
		return t, objects.ID{}, nil
	}
	id, err := objects.ParseID(fields[3])
	return t, id, err
}

// bigFile is from where on a file's difference is not shown but only told, in bytes: comparing lines takes a multiple of
// it in memory.
const bigFile = 16 << 20

// Patch writes the difference of two trees or commits in Git's unified format. What it writes is what an agent chose,
// except that names are quoted. With binary it is a patch that `git apply` takes.
func (r *Repository) Patch(ctx context.Context, a, b objects.ID, binary bool, w io.Writer) error {
	c := call{args: diffArgs("-p", "--full-index"), stdout: w, settings: []setting{{"core.quotePath", "true"}}}
	if binary {
		c.args = append(c.args, "--binary")
	} else {
		c.settings = append(c.settings, setting{"core.bigFileThreshold", strconv.Itoa(bigFile)})
	}
	c.args = append(c.args, a.String(), b.String(), "--")
	if _, err := r.runner.run(ctx, c); err != nil {
		return fmt.Errorf("compare %s and %s: %w", a, b, err)
	}
	return nil
}
