// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func plain(n int64) Checkpoint { return Checkpoint{Name: name(n), Sequence: n, Valid: true} }
func promoted(n int64) Checkpoint {
	return Checkpoint{Name: name(n), Sequence: n, Valid: true, Promoted: true}
}
func invalid(n int64) Checkpoint { return Checkpoint{Name: name(n), Sequence: n, Invalid: true} }
func named(n int64) Checkpoint {
	return Checkpoint{Name: name(n), Sequence: n, Invalid: true, Named: true}
}
func name(n int64) string { return fmt.Sprintf("login-%d", n) }

func TestSurplus(t *testing.T) {
	tests := map[string]struct {
		records []Checkpoint
		keep    int
		want    []string
	}{
		"few enough":                           {records: []Checkpoint{plain(1), invalid(2)}, keep: 2},
		"what tells least goes first":          {records: []Checkpoint{invalid(1), promoted(2), plain(3), plain(4), promoted(5)}, keep: 3, want: []string{name(3), name(4)}},
		"then the oldest":                      {records: []Checkpoint{promoted(3), invalid(1), promoted(2), invalid(4)}, keep: 2, want: []string{name(1), name(2)}},
		"the newest valid one stays":           {records: []Checkpoint{plain(1), invalid(2), invalid(3), invalid(4)}, keep: 2, want: []string{name(2), name(3)}},
		"more are to stay than keep allows":    {records: []Checkpoint{promoted(1), plain(2), invalid(3)}, keep: 1},
		"what is named stays":                  {records: []Checkpoint{named(1), plain(2), named(3), plain(4)}, keep: 1, want: []string{name(2)}},
		"keep nothing is not a way to lose it": {records: []Checkpoint{plain(1), plain(2)}, keep: 0, want: []string{name(1)}},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Surplus(tc.records, tc.keep)); diff != "" {
				t.Errorf("surplus (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSurplusProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "records")
		var records []Checkpoint
		for i := range n {
			kind := rapid.SampledFrom([]func(int64) Checkpoint{plain, promoted, invalid, named}).Draw(t, "kind")
			records = append(records, kind(int64(i+1)))
		}
		shuffled := rapid.Permutation(records).Draw(t, "order")
		keep := rapid.IntRange(0, 40).Draw(t, "keep")
		gone := Surplus(shuffled, keep)
		if diff := cmp.Diff(Surplus(records, keep), gone); diff != "" {
			t.Fatalf("the order of the records matters:\n%s", diff)
		}
		left := slices.DeleteFunc(slices.Clone(records), func(r Checkpoint) bool { return slices.Contains(gone, r.Name) })
		if len(left) < min(n, keep) {
			t.Fatalf("%d of %d are left, %d were to be kept", len(left), n, keep)
		}
		if again := Surplus(left, keep); len(again) != 0 {
			t.Fatalf("what was kept does not stay: %v", again)
		}
		if slices.ContainsFunc(records, func(r Checkpoint) bool { return r.Named && slices.Contains(gone, r.Name) }) {
			t.Fatal("one that is named is gone")
		}
		if n > 0 && left[len(left)-1] != records[n-1] {
			t.Fatal("the newest is gone")
		}
	})
}
