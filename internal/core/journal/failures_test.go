// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// takenBack is a checkpoint whose work was not valid.
func takenBack(n int64, objection string) []journal.Record {
	return []journal.Record{{Intent: &journal.Intent{Sequence: n, Commit: fmt.Sprintf("k%d", n), OldChain: chainBefore(n), Tree: "t1", Delivery: "b", OldDelivery: "b", Restore: "bt",
		TreeVerdict: protocol.Invalid, TakesBack: true, Objection: objection, Report: protocol.CheckpointReport{Task: "form", Settled: true}}}, {Done: &journal.Done{Sequence: n}}}
}

func chainBefore(n int64) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf("k%d", n-1)
}

// TestFailures: every failure that an agent had to correct is listed once, in this attempt and in later ones, with the words that say most.
func TestFailures(t *testing.T) {
	step := func(n int64, message string, over bool) journal.Record {
		return journal.Record{Steered: &protocol.SteeringStep{Sequence: n, Task: "form", Anomaly: "LoopDetected", Evidence: "3 times.", Message: message, Over: over}}
	}
	records := []journal.Record{attempt1, base, begun, started}
	records = append(records, takenBack(1, "web/x.go is outside")...)
	records = append(records, step(1, "Stop.", false), step(2, "Stop now.", false), step(3, "", true))
	records = append(records, takenBack(2, "go.mod is outside")...)
	records = append(records, ended,
		journal.Record{TaskCorrected: &journal.TaskCorrected{Name: "form", Text: "Your work went back: go.mod is outside."}},
		journal.Record{TaskCorrected: &journal.TaskCorrected{Name: "form", ID: "s1", Text: "Go on."}},
		journal.Record{TaskRestarted: &journal.TaskRestarted{Name: "form", ID: "s2", Text: "Start anew."}})
	records = append(records, takenBack(3, "")...)
	records = append(records, journal.Record{TaskRestarted: &journal.TaskRestarted{Name: "form", Text: "A gate has failed."}}, attempt2)
	want := []journal.Failure{
		{Task: "form", Checkpoint: 1, Told: "web/x.go is outside"},
		{Task: "form", Anomaly: "LoopDetected", Checkpoint: 1, Told: "LoopDetected: 3 times. Stop now."},
		{Task: "form", Checkpoint: 2, Told: "Your work went back: go.mod is outside."},
		{Task: "form", Checkpoint: 3, Told: "A gate has failed."},
	}
	if diff := cmp.Diff(want, read(t, write(t, records...)).Failures); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, read(t, write(t, append(records, snapshotOf(t, 1, records...))...)).Failures); diff != "" {
		t.Errorf("through a snapshot (-want +got):\n%s", diff)
	}
	old := snapshotOf(t, 1, records...)
	old.Snapshot.State.Failures = nil
	if all := read(t, write(t, append(records, old)...)).Failures; all != nil {
		t.Errorf("through a snapshot of an earlier version: %+v", all)
	}
}

// TestFailuresAreBounded: an agent that fails again and again, with long words, fills no more than the bound. The newest failures are kept.
func TestFailuresAreBounded(t *testing.T) {
	records := []journal.Record{attempt1, base, begun, started}
	for n := int64(1); n <= 40; n++ {
		records = append(records, takenBack(n, fmt.Sprintf("%d %s", n, strings.Repeat("x", 5000)))...)
	}
	all := read(t, write(t, records...)).Failures
	if n := len(all); n != 16 || all[0].Checkpoint != 25 || all[n-1].Checkpoint != 40 || len(all[0].Told) > 2000 {
		t.Errorf("%d failures, the oldest after checkpoint %d with %d bytes", n, all[0].Checkpoint, len(all[0].Told))
	}
}
