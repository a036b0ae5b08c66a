// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// life is a sequence of tasks.
type life struct {
	records    []journal.Record
	sequence   int64
	commit, at string
}

func newLife(tasks ...string) *life {
	l := &life{commit: "b", records: []journal.Record{attempt1, base, reviewedOrders(tasks...)}}
	return l
}

// checkpoint of a task; completes is the task that it completes, if it does.
func (l *life) checkpoint(task, completes string, verdict protocol.Verdict) {
	l.sequence++
	tree, chain := fmt.Sprintf("t%d", l.sequence), fmt.Sprintf("k%d", l.sequence)
	l.records = append(l.records, journal.Record{Intent: &journal.Intent{
		Sequence: l.sequence, Commit: chain, OldChain: l.at, Tree: tree, Delivery: "d" + tree, OldDelivery: l.commit, TreeVerdict: verdict, Completes: completes,
		Report: protocol.CheckpointReport{Task: task, Settled: true},
	}}, journal.Record{Done: &journal.Done{Sequence: l.sequence}})
	l.at, l.commit = chain, "d"+tree
}

// begin a task with a document.
func (l *life) begin(task string, documents ...string) {
	l.records = append(l.records, journal.Record{TaskBegun: &journal.TaskBegun{Name: task, Knowledge: &journal.Knowledge{Given: len(documents), GivenPaths: documents}}})
}

// gate of a task has run on the tree of the newest checkpoint.
func (l *life) gate(task string, state gates.State) {
	l.records = append(l.records, journal.Record{GateRan: &journal.GateRan{Task: task, Result: gates.Result{Gate: unit.Name, Definition: gates.Sum(unit), Tree: fmt.Sprintf("t%d", l.sequence), State: state}}})
}

// do a task with a document, without a fault.
func (l *life) do(task string, documents ...string) {
	l.begin(task, documents...)
	l.checkpoint(task, task, protocol.Valid)
	l.gate(task, gates.Passed)
}

// TestDocumentsProveThemselves in tasks that are done without a fault, from the first and from a snapshot.
func TestDocumentsProveThemselves(t *testing.T) {
	l := newLife("a", "b", "c", "d")
	l.do("a", errorsPath, namesPath)
	l.begin("b", errorsPath) // a violation
	l.checkpoint("b", "", protocol.Invalid)
	l.checkpoint("b", "b", protocol.Valid)
	l.gate("b", gates.Passed)
	l.begin("c", errorsPath) // a gate that fails, and an attempt that ends
	l.checkpoint("c", "c", protocol.Valid)
	l.gate("c", gates.Failed)
	l.records = append(l.records, attempt2)
	middle := len(l.records)
	l.begin("c", errorsPath)
	l.checkpoint("c", "c", protocol.Valid)
	l.gate("c", gates.Passed)
	l.do("d", errorsPath, "docs/knowledge/_index.md")
	want := map[string]int{errorsPath: 2, namesPath: 1}
	s := read(t, write(t, l.records...))
	if diff := cmp.Diff(want, s.Proved); diff != "" || !s.Tasks["c"].Done || !s.Tasks["b"].Done {
		t.Errorf("(-want +got):\n%s", diff)
	}
	whole := append(append(append([]journal.Record{}, l.records[:middle]...), snapshotOf(t, 1, l.records[:middle]...)), l.records[middle:]...)
	lines := bytes.SplitAfter(write(t, whole...), []byte("\n"))
	if diff := cmp.Diff(want, read(t, bytes.Join(lines[middle:], nil)).Proved); diff != "" {
		t.Errorf("from the snapshot (-want +got):\n%s", diff)
	}
	old := snapshotOf(t, 1, l.records...) // by a version that did not count
	old.Snapshot.State.Proved = nil
	for name, task := range old.Snapshot.State.Tasks {
		task.Documents, task.Faulty = nil, false
		old.Snapshot.State.Tasks[name] = task
	}
	if s, err := journal.Replay(append(l.records, old)); err != nil || s.Proved != nil || s.Tasks["d"].Documents != nil {
		t.Errorf("after a snapshot of an earlier version: %v, %+v", err, s.Proved)
	}
}

// TestDocumentsProveThemselvesAnew when they have another text, and when a directive names them.
func TestDocumentsProveThemselvesAnew(t *testing.T) {
	naming := finding("a")
	naming.Description = "Do not do what " + errorsPath + " says."
	established := reviewed(1, "t")
	established.Reviewed.Established = []journal.Written{{Path: errorsPath, Text: "one"}}
	for name, tc := range map[string]struct {
		record  journal.Record
		written map[string]string
	}{
		"another text":   {wrote(1, journal.Written{Path: errorsPath, Text: "one"}), map[string]string{errorsPath: "one"}},
		"established":    {established, map[string]string{errorsPath: "one"}},
		"a directive":    {reviewed(1, "t", naming), nil},
		"other findings": {reviewed(1, "t", finding("b")), nil},
	} {
		l := newLife("a")
		l.do("a", errorsPath, namesPath)
		s, err := journal.Replay(append(l.records, tc.record))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{namesPath: 1}
		if name == "other findings" {
			want[errorsPath] = 1
		}
		if diff := cmp.Diff(want, s.Proved); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.written, s.Written); diff != "" {
			t.Errorf("%s, written (-want +got):\n%s", name, diff)
		}
	}
}

// TestASnapshotKeepsAFaultOfATaskWithoutDocuments: its agent had documents when the fault was found, and gets none any more.
func TestASnapshotKeepsAFaultOfATaskWithoutDocuments(t *testing.T) {
	l := newLife("a")
	l.begin("a", errorsPath)
	l.checkpoint("a", "", protocol.Invalid)
	l.records = append(l.records, attempt2, journal.Record{TaskBegun: &journal.TaskBegun{Name: "a"}})
	before, err := journal.Replay(l.records)
	if err != nil || !before.Tasks["a"].Faulty {
		t.Fatalf("%v, %+v", err, before.Tasks["a"])
	}
	if _, err := journal.Replay(append(l.records, snapshotOf(t, 1, l.records...))); err != nil {
		t.Errorf("the journal cannot be read any more: %v", err)
	}
}

// TestADocumentThatDoesNotHoldIsNotEstablished: a review establishes a document that has proved itself, and then says that it does not hold.
func TestADocumentThatDoesNotHoldIsNotEstablished(t *testing.T) {
	r := wrote(1, journal.Written{Path: errorsPath, Text: "deprecated"})
	r.Reviewed.Established = []journal.Written{{Path: errorsPath, Text: "established"}}
	s, err := journal.Replay([]journal.Record{attempt1, base, reviewedOrders("form"), r})
	if err != nil || s.Written[errorsPath] != "deprecated" {
		t.Errorf("%v, %q", err, s.Written[errorsPath])
	}
}

// TestADocumentIsNotEstablishedByTheReviewThatObjectsToIt, and what the directive does not name counts as before.
func TestADocumentIsNotEstablishedByTheReviewThatObjectsToIt(t *testing.T) {
	l := newLife("a")
	l.do("a", errorsPath, namesPath)
	s := read(t, write(t, l.records...))
	naming := finding("a")
	naming.Description = "Do not do what " + errorsPath + " says."
	if diff := cmp.Diff(map[string]int{namesPath: 1}, s.ProvedBeside([]protocol.Directive{naming})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{errorsPath: 1, namesPath: 1}, s.Proved); diff != "" {
		t.Errorf("the state has changed (-want +got):\n%s", diff)
	}
}
