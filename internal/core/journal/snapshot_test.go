// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// snapshotOf is the record that follows others.
func snapshotOf(t *testing.T, segments int, records ...journal.Record) journal.Record {
	t.Helper()
	s, err := journal.Replay(records)
	if err != nil {
		t.Fatal(err)
	}
	return journal.Record{Snapshot: &journal.Snapshot{Segments: segments, State: s}}
}

func TestSnapshot(t *testing.T) {
	before := []journal.Record{attempt1, base, begun, started, held, heldDone}
	after := []journal.Record{ended, good, goodDone}
	snapshot := snapshotOf(t, 3, before...)
	whole := write(t, append(append(append([]journal.Record{}, before...), snapshot), after...)...)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	tail := bytes.Join(lines[len(before):], nil)
	if got := journal.Segments(tail); got != 3 {
		t.Errorf("segments = %d, want 3", got)
	}
	if got := journal.Segments(whole); got != 0 {
		t.Errorf("segments of the whole = %d, want 0", got)
	}
	plain := write(t, append(append([]journal.Record{}, before...), after...)...)
	if a, b := read(t, tail), read(t, plain); !reflect.DeepEqual(a, b) {
		t.Errorf("from the snapshot: %+v\nfrom all records: %+v", a, b)
	}
	if a, b := read(t, whole), read(t, plain); !reflect.DeepEqual(a, b) {
		t.Errorf("through the snapshot: %+v\nfrom all records: %+v", a, b)
	}
	// In the middle a snapshot has to follow the line before it like any other.
	cut := bytes.Join(append(lines[:len(before)-1:len(before)-1], lines[len(before):]...), nil)
	var corrupt *journal.CorruptError
	if _, _, err := journal.Decode(cut); !errors.As(err, &corrupt) || corrupt.Line != len(before) {
		t.Errorf("a journal without the line before its snapshot: %v", err)
	}
}

func TestSnapshotThatLies(t *testing.T) {
	lie := snapshotOf(t, 1, attempt1, base)
	lie.Snapshot.State.Promoted.Commit = "another"
	for name, test := range map[string]struct {
		records []journal.Record
		want    string
	}{
		"of another state": {[]journal.Record{attempt1, base, lie}, "not what the records before it add up to"},
		"of nothing":       {[]journal.Record{{Snapshot: &journal.Snapshot{Segments: 1}}}, "attempt 0"},
		"of no segments":   {[]journal.Record{attempt1, snapshotOf(t, 0, attempt1)}, "0 segments"},
	} {
		if _, err := journal.Replay(test.records); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestStateIsWrittenWhole: a field that encoding/json leaves out would be lost with the first snapshot.
func TestStateIsWrittenWhole(t *testing.T) {
	for _, kind := range []reflect.Type{
		reflect.TypeFor[journal.State](), reflect.TypeFor[journal.Task](), reflect.TypeFor[journal.Checkpoint](),
		reflect.TypeFor[journal.Workspace](), reflect.TypeFor[journal.Promoted](), reflect.TypeFor[journal.Steered](),
	} {
		for f := range kind.Fields() {
			if !f.IsExported() || f.Tag.Get("json") == "-" {
				t.Errorf("%s.%s is not written", kind, f.Name)
			}
		}
	}
}

// TestASnapshotWithoutWorks is by an earlier version. What later ones add up to begins with it, for a reader of the snapshot and for one of all records.
func TestASnapshotWithoutWorks(t *testing.T) {
	promoted := func(sequence int64, old, next string) []journal.Record {
		return []journal.Record{{Intent: &journal.Intent{Sequence: sequence, Commit: "k" + next, OldChain: "k" + old, Tree: "t" + next, Delivery: "d" + next, OldDelivery: "d" + old,
			TreeVerdict: protocol.Valid, Report: protocol.CheckpointReport{Task: "form", Settled: true}}}, {Done: &journal.Done{Sequence: sequence}}}
	}
	first := promoted(1, "", "1")
	first[0].Intent.OldChain, first[0].Intent.OldDelivery = "", "b"
	before := append([]journal.Record{attempt1, base, begun, started}, first...)
	old := snapshotOf(t, 1, before...)
	form := old.Snapshot.State.Tasks["form"]
	if form.Work.Promoted != 1 {
		t.Fatalf("work %+v", form.Work)
	}
	form.Work = protocol.TaskWork{}
	old.Snapshot.State.Tasks["form"] = form
	tail := append([]journal.Record{old}, promoted(2, "1", "2")...)
	tail = append(tail, snapshotOf(t, 2, tail...))
	whole, err := journal.Replay(append(before, tail...))
	if err != nil {
		t.Fatal(err)
	}
	short, err := journal.Replay(tail)
	if err != nil {
		t.Fatal(err)
	}
	if got := whole.Tasks["form"].Work; got != short.Tasks["form"].Work || got.Promoted != 1 {
		t.Errorf("from all records: %+v, from the snapshot: %+v", got, short.Tasks["form"].Work)
	}
}
