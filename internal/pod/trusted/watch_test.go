// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"slices"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
)

// TestPositions: a record has the position that its watcher was told, whatever was folded and opened again since, and positions grow.
func TestPositions(t *testing.T) {
	d := Dir(t.TempDir())
	told := map[int64]string{}
	var order []int64
	kind := func(r journal.Record) string {
		switch {
		case r.Intent != nil:
			return "intent"
		case r.Done != nil:
			return "done"
		}
		return "other"
	}
	watch := func(b *Journal) {
		b.Watch(func(now journal.State) Watcher {
			if now.Sequence != b.state.Sequence {
				t.Errorf("it begins after checkpoint %d", now.Sequence)
			}
			return func(position int64, after journal.State, r journal.Record) {
				if r.Intent != nil && after.Sequence != r.Intent.Sequence {
					t.Errorf("the state is that of checkpoint %d", after.Sequence)
				}
				told[position] = kind(r)
				order = append(order, position)
			}
		})
	}
	b := opened(t, d, 4<<10)
	watch(b)
	records := life(60)
	for n := 0; n < len(records); n += 20 {
		noted(t, b, records[n:min(n+20, len(records))])
		if n%40 == 0 {
			b = opened(t, d, 4<<10)
			watch(b)
		}
	}
	if b.segments < 3 || !slices.IsSorted(order) || len(told) != len(records) {
		t.Fatalf("%d segments, %d positions of %d records: %v", b.segments, len(told), len(records), order)
	}
	whole, err := ReadJournal(d)
	if err != nil {
		t.Fatal(err)
	}
	have, _, err := journal.Decode(whole)
	if err != nil {
		t.Fatal(err)
	}
	for position, r := range Positions(have) {
		if want, is := told[position]; r.Snapshot == nil && (!is || want != kind(r)) {
			t.Errorf("position %d is told of %q, and has %q", position, want, kind(r))
		}
	}
}
