// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestSteered: steps have rising numbers, over all attempts and through a snapshot, and what they hold is counted.
func TestSteered(t *testing.T) {
	step := func(n int64) journal.Record {
		return journal.Record{Steered: &protocol.SteeringStep{Sequence: n, Rung: "Surgery", Before: "12345", After: "67"}}
	}
	records := []journal.Record{attempt1, step(1), step(3), attempt2, step(4)}
	want := journal.Steered{Sequence: 4, Bytes: 21, Steps: []protocol.SteeringStep{{Sequence: 1, Rung: "Surgery"}, {Sequence: 3, Rung: "Surgery"}, {Sequence: 4, Rung: "Surgery"}}}
	if diff := cmp.Diff(want, read(t, write(t, records...)).Steered); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, read(t, write(t, append(records, snapshotOf(t, 1, records...))...)).Steered); diff != "" {
		t.Errorf("through a snapshot (-want +got):\n%s", diff)
	}
	for _, n := range []int64{-1, 0, 3, 4} {
		if _, err := journal.Replay(append(records, step(n))); err == nil || !strings.Contains(err.Error(), "of steering after step 4") {
			t.Errorf("step %d: %v", n, err)
		}
	}
}

// TestSteeredIsBounded: of many steps the newest are kept, and longest what was done with the whole run. Those of an attempt go with it.
func TestSteeredIsBounded(t *testing.T) {
	records := []journal.Record{attempt1, {Steered: &protocol.SteeringStep{Sequence: 1, Attempt: 1, Rung: "Restart"}}}
	for n := int64(2); n <= 200; n++ {
		records = append(records, journal.Record{Steered: &protocol.SteeringStep{Sequence: n, Attempt: 1, Rung: "Nudge", Message: "m"}})
	}
	s := read(t, write(t, records...)).Steered
	if n := len(s.Steps); n != 64 || s.Steps[0].Rung != "Restart" || s.Steps[1].Sequence != 138 || s.Steps[n-1].Sequence != 200 {
		t.Errorf("%d steps: %+v", n, s.Steps[:2])
	}
	records = append(records, attempt2, journal.Record{Steered: &protocol.SteeringStep{Sequence: 201, Attempt: 2, Rung: "Nudge"}})
	if s := read(t, write(t, records...)).Steered; len(s.Steps) != 1 || s.Steps[0].Sequence != 201 {
		t.Errorf("in the next attempt: %+v", s.Steps)
	}
}

// TestSnapshotOfAnEarlierVersion does not have the steps: the records before it still add up to it.
func TestSnapshotOfAnEarlierVersion(t *testing.T) {
	records := []journal.Record{attempt1, {Steered: &protocol.SteeringStep{Sequence: 1, Attempt: 1, Rung: "Nudge"}}}
	old := snapshotOf(t, 1, records...)
	old.Snapshot.State.Steered.Steps = nil
	if s := read(t, write(t, append(records, old)...)); s.Steered.Sequence != 1 {
		t.Errorf("%+v", s.Steered)
	}
}
