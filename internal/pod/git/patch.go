// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// diffArgs compare two trees only by their content: no rename is guessed, no program is run, no attribute is read.
func diffArgs(more ...string) []string {
	return append([]string{"diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"}, more...)
}

// bigFile is from where on a file's difference is not shown but only told, in bytes: comparing lines takes a multiple of
// it in memory.
const bigFile = 16 << 20

// Patch writes the difference of two trees or commits in Git's unified format. An agent chose its content; only names are quoted. With
// binary it is a patch that `git apply` takes.
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
