// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// sized is a change of a file that is new.
func sized(path string, size int64) judge.Change {
	return judge.Change{Path: path, Kind: judge.Added, New: judge.Entry{Size: size}}
}

// TestCompared: small files are compared whatever else has changed. Of the others, chance decides, and as many are compared as there is room for.
func TestCompared(t *testing.T) {
	var all []judge.Change
	for i := range 6 {
		all = append(all, sized(fmt.Sprintf("large%d", i), 1<<30))
	}
	all = append(all, sized("small", 10), sized(strings.Repeat("x", review.MaxPath+1), 1))
	stays := func(int, func(i, j int)) {}
	if diff := cmp.Diff([]string{"small", "large0", "large1"}, review.Compared(all, stays)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	last := func(n int, swap func(i, j int)) { swap(0, n-1) }
	if diff := cmp.Diff([]string{"small", "large0", "large5"}, review.Compared(all, last)); diff != "" {
		t.Errorf("after a shuffle (-want +got):\n%s", diff)
	}
	if got := review.Compared(nil, stays); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

// TestComparedProperties: each path stands in the list at most once, and the smallest file is always there.
func TestComparedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []judge.Change
		for i := range rapid.IntRange(1, 200).Draw(t, "files") {
			all = append(all, sized(fmt.Sprintf("f%03d", i), rapid.Int64Range(0, 1<<20).Draw(t, "size")))
		}
		least := slices.MinFunc(all, func(a, b judge.Change) int { return int(a.New.Size - b.New.Size) })
		got := review.Compared(all, func(n int, swap func(i, j int)) {
			for i := range n {
				swap(i, rapid.IntRange(0, i).Draw(t, "place"))
			}
		})
		if !slices.Contains(got, least.Path) {
			t.Fatalf("the smallest file %s is not in %q", least.Path, got)
		}
		slices.Sort(got)
		if len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("a path stands there twice: %q", got)
		}
	})
}
