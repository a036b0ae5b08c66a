// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestSteered: steps have rising numbers, over all attempts and through a snapshot, and what they hold is counted.
func TestSteered(t *testing.T) {
	step := func(n int64) journal.Record {
		return journal.Record{Steered: &protocol.Steering{Sequence: n, Rung: "Surgery", Before: "12345", After: "67"}}
	}
	records := []journal.Record{attempt1, step(1), step(3), attempt2, step(4)}
	want := journal.Steered{Sequence: 4, Bytes: 21}
	if s := read(t, write(t, records...)); s.Steered != want {
		t.Errorf("%+v", s.Steered)
	}
	if s := read(t, write(t, append(records, snapshotOf(t, 1, records...))...)); s.Steered != want {
		t.Errorf("through a snapshot: %+v", s.Steered)
	}
	for _, n := range []int64{-1, 0, 3, 4} {
		if _, err := journal.Replay(append(records, step(n))); err == nil || !strings.Contains(err.Error(), "of steering after step 4") {
			t.Errorf("step %d: %v", n, err)
		}
	}
}
