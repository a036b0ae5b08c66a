// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// TestSortStable: as the sort of the standard library.
func TestSortStable(t *testing.T) {
	type entry struct{ key, value int }
	rapid.Check(t, func(t *rapid.T) {
		var list []entry
		for i, key := range rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "keys") {
			list = append(list, entry{key, i})
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
		if plain.SortStable(list, func(a, b *entry) int { return cmp.Compare(a.key, b.key) }); !slices.Equal(list, want) {
			t.Fatalf("%v, want %v", list, want)
		}
	})
}
