// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// checks is the record of a review that was shown directives and finds some of them still there.
func checks(over int, shown, still []string) journal.Record {
	r := reviewed(over, "t1")
	r.Reviewed.Checked, r.Reviewed.StillThere = shown, still
	return r
}

// given is the record of the first state of a directive.
func given(d protocol.Directive) journal.Record {
	return journal.Record{Directed: &journal.Directed{Entries: directives.Book{}.Given([]protocol.Directive{d}, 1).Follow()}}
}

// TestAnAnswerIsChecked: an answered directive waits for the next look of its reviewer. If it is still there, it is given once more.
func TestAnAnswerIsChecked(t *testing.T) {
	a, b := finding("a"), finding("b")
	other := protocol.Directive{ID: "design/c", Source: protocol.SourceDesign}
	ended := answered(a, protocol.DirectiveAddressed)
	ended.Directed.Entries[0].Given = false
	before := []journal.Record{attempt1, base, reviewedOrders("form"), reviewed(1, "t1", a, b), given(a), given(b), answered(a, protocol.DirectiveAddressed), ended, answered(b, protocol.DirectiveEscalated)}
	state := func(more ...journal.Record) journal.State {
		return read(t, write(t, slices.Concat(before, more)...))
	}
	ids := func(list []protocol.Directive) (all []string) {
		for _, d := range list {
			all = append(all, d.ID)
		}
		return all
	}
	for name, tc := range map[string]struct {
		more            []journal.Record
		answered, found []string
		// of directive a.
		state string
		again int
	}{
		"answered":                {nil, []string{a.ID, b.ID}, []string{b.ID}, protocol.DirectiveAddressed, 0},
		"gone":                    {[]journal.Record{checks(2, []string{a.ID, b.ID}, nil)}, nil, []string{b.ID}, protocol.DirectiveAddressed, 0},
		"still there":             {[]journal.Record{checks(2, []string{a.ID, b.ID}, []string{a.ID})}, nil, []string{b.ID, a.ID}, protocol.DirectivePending, 1},
		"not shown":               {[]journal.Record{checks(2, []string{b.ID}, []string{a.ID, b.ID})}, []string{a.ID}, []string{b.ID}, protocol.DirectiveAddressed, 0},
		"of nobody":               {[]journal.Record{checks(2, []string{other.ID, "mine"}, []string{other.ID, "mine"})}, []string{a.ID, b.ID}, []string{b.ID}, protocol.DirectiveAddressed, 0},
		"answered again":          {[]journal.Record{checks(2, []string{a.ID, b.ID}, []string{a.ID}), answered(a, protocol.DirectiveEscalated)}, []string{a.ID}, []string{b.ID, a.ID}, protocol.DirectiveEscalated, 1},
		"still there, again":      {[]journal.Record{checks(2, []string{a.ID, b.ID}, []string{a.ID}), answered(a, protocol.DirectiveAddressed), checks(3, []string{a.ID}, []string{a.ID})}, nil, []string{b.ID, a.ID}, protocol.DirectiveEscalated, 2},
		"and the agent insists":   {[]journal.Record{checks(2, []string{a.ID}, []string{a.ID}), answered(a, protocol.DirectiveAddressed), checks(3, []string{a.ID}, []string{a.ID}), answered(a, protocol.DirectiveAddressed)}, []string{b.ID}, []string{b.ID}, protocol.DirectiveAddressed, 2},
		"another agent finds out": {[]journal.Record{attempt2, answered(b, protocol.DirectiveAddressed)}, []string{a.ID, b.ID}, nil, protocol.DirectiveAddressed, 0},
	} {
		s := state(tc.more...)
		if diff := cmp.Diff(tc.answered, ids(s.Answered)); diff != "" {
			t.Errorf("%s: answered (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.found, ids(s.Found)); diff != "" {
			t.Errorf("%s: found (-want +got):\n%s", name, diff)
		}
		if e := s.Directives.Find(a.ID); e.State != tc.state || e.Again != tc.again {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if s := state(checks(2, []string{a.ID}, []string{a.ID})); s.Reviews[protocol.SourceCodeStyle].Quiet != 0 {
		t.Errorf("a look that opens a directive again is quiet: %+v", s.Reviews)
	}
	skipped := checks(2, nil, nil)
	skipped.Reviewed.Outcome = protocol.ReviewSkipped
	if s := state(skipped); len(s.Answered) != 2 {
		t.Errorf("a skipped review has checked an answer: %+v", s.Answered)
	}
}

// TestASnapshotWithoutAnswers: an earlier version has written it. The answers before it are not checked, whoever reads it.
func TestASnapshotWithoutAnswers(t *testing.T) {
	a := finding("a")
	before := []journal.Record{attempt1, base, reviewedOrders("form"), reviewed(1, "t1", a), given(a), answered(a, protocol.DirectiveAddressed)}
	snapshot := snapshotOf(t, 1, before...)
	if len(snapshot.Snapshot.State.Answered) != 1 {
		t.Fatalf("a snapshot without the answer: %+v", snapshot.Snapshot.State)
	}
	for name, older := range map[string]bool{"of this version": false, "of an earlier version": true} {
		n := *snapshot.Snapshot
		if older {
			n.State.Answered = nil
		}
		whole := slices.Concat(before, []journal.Record{{Snapshot: &n}, checks(2, []string{a.ID}, []string{a.ID})})
		s, err := journal.Replay(whole)
		if err != nil {
			t.Fatal(name, err)
		}
		tail, err := journal.Replay(whole[len(before):])
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(s.Directives, tail.Directives); diff != "" || (s.Directives.Find(a.ID).Again == 0) != older {
			t.Errorf("%s: %+v (-all records +from the snapshot):\n%s", name, s.Directives, diff)
		}
	}
}
