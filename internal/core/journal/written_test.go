// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	errorsPath = "docs/knowledge/conventions/errors.md"
	namesPath  = "docs/knowledge/conventions/names.md"
)

// wrote is the record of a review with documents.
func wrote(over int, documents ...journal.Written) journal.Record {
	r := reviewed(over, "t")
	r.Reviewed.Documents = documents
	return r
}

// TestWrittenDocuments stay in the state, also through a snapshot and in another attempt. The newest text counts.
func TestWrittenDocuments(t *testing.T) {
	records := []journal.Record{
		attempt1, base, reviewedOrders("form"), wrote(1, journal.Written{Path: errorsPath, Text: "one"}, journal.Written{Path: namesPath, Text: "names"}),
		wrote(2, journal.Written{Path: errorsPath, Text: "two"}),
	}
	before, err := journal.Replay(records[:4])
	if err != nil {
		t.Fatal(err)
	}
	kept := maps.Clone(before.Written)
	if _, err := before.Apply(records[4]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, before.Written); diff != "" {
		t.Errorf("the state before the record has changed:\n%s", diff)
	}
	want := map[string]string{errorsPath: "two", namesPath: "names"}
	if diff := cmp.Diff(want, read(t, write(t, append(records, attempt2)...)).Written); diff != "" {
		t.Errorf("from all records (-want +got):\n%s", diff)
	}
	whole := write(t, append(records, snapshotOf(t, 1, records...))...)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	if diff := cmp.Diff(want, read(t, bytes.Join(lines[len(records):], nil)).Written); diff != "" {
		t.Errorf("from the snapshot (-want +got):\n%s", diff)
	}
}

// TestUnconfirmedDocuments: a document waits for a user as its newest record says.
func TestUnconfirmedDocuments(t *testing.T) {
	records := []journal.Record{attempt1, base, reviewedOrders("form"),
		wrote(1, journal.Written{Path: namesPath, Text: "names", Unconfirmed: true}, journal.Written{Path: errorsPath, Text: "one", Unconfirmed: true})}
	if diff := cmp.Diff([]string{errorsPath, namesPath}, read(t, write(t, append(records, attempt2)...)).Unconfirmed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	records = append(records, wrote(2, journal.Written{Path: errorsPath, Text: "two"}))
	whole := write(t, append(records, snapshotOf(t, 1, records...))...)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	if diff := cmp.Diff([]string{namesPath}, read(t, bytes.Join(lines[len(records):], nil)).Unconfirmed); diff != "" {
		t.Errorf("from the snapshot (-want +got):\n%s", diff)
	}
}

// TestASnapshotWithoutDocuments is by an earlier version, which did not know them.
func TestASnapshotWithoutDocuments(t *testing.T) {
	records := []journal.Record{attempt1, base, reviewedOrders("form"), wrote(1, journal.Written{Path: errorsPath, Text: "one"})}
	old := snapshotOf(t, 1, records...)
	old.Snapshot.State.Written = nil
	s, err := journal.Replay(append(records, old))
	if err != nil || s.Written != nil {
		t.Errorf("%v, written %v", err, s.Written)
	}
}

func TestDocumentsThatCannotBe(t *testing.T) {
	for _, d := range []journal.Written{{Path: "README.md", Text: "one"}, {Path: "docs/knowledge/_index.md", Text: "one"}, {Path: errorsPath}} {
		if _, err := journal.Replay([]journal.Record{attempt1, base, reviewedOrders("form"), wrote(1, d)}); err == nil {
			t.Errorf("%+v is taken", d)
		}
	}
}

// TestADocumentBringsTheIntervalBack: what the reviewer looks for is there.
func TestADocumentBringsTheIntervalBack(t *testing.T) {
	records := []journal.Record{attempt1, base, reviewedOrders("form"), reviewed(1, "t1"), reviewed(2, "t2")}
	for _, tc := range []struct {
		last journal.Record
		want int
	}{{reviewed(3, "t3"), 2}, {wrote(3, journal.Written{Path: errorsPath, Text: "one"}), 0}} {
		s, err := journal.Replay(append(slices.Clone(records), tc.last))
		if got := s.Reviews[protocol.SourceCodeStyle]; err != nil || got.Quiet != tc.want || got.Looked != 3 {
			t.Errorf("%v, %+v, want that its interval has doubled %d times", err, got, tc.want)
		}
	}
}
