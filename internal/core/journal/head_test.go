// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestHead: what is delivered is the commit with documents, as long as it follows the promoted commit.
func TestHead(t *testing.T) {
	learned := func(on, commit, tree string) journal.Record {
		return journal.Record{KnowledgeCommitted: &journal.KnowledgeCommitted{On: on, Commit: commit, Tree: tree}}
	}
	start := []journal.Record{attempt1, base}
	b := base.Base
	promoted := []journal.Record{
		{Intent: &journal.Intent{Sequence: 1, Commit: "k1", Tree: "t1", Delivery: "d1", OldDelivery: b.Commit, TreeVerdict: protocol.Valid}},
		{Done: &journal.Done{Sequence: 1}},
	}
	for name, c := range map[string]struct {
		more []journal.Record
		want journal.Promoted
	}{
		"none":          {nil, journal.Promoted(*b)},
		"one":           {[]journal.Record{learned(b.Commit, "l", "lt")}, journal.Promoted{Commit: "l", Tree: "lt"}},
		"taken back":    {[]journal.Record{learned(b.Commit, "l", "lt"), learned(b.Commit, b.Commit, b.Tree)}, journal.Promoted(*b)},
		"of older work": {append([]journal.Record{learned(b.Commit, "l", "lt")}, promoted...), journal.Promoted{Commit: "d1", Tree: "t1"}},
	} {
		s, err := journal.Replay(append(start[:2:2], c.more...))
		if err != nil || s.Head() != c.want {
			t.Errorf("%s: %v, head %+v, want %+v", name, err, s.Head(), c.want)
		}
	}
	for name, r := range map[string]journal.Record{"another delivery": learned("other", "l", "lt"), "no commit": learned(b.Commit, "", "lt"), "no tree": learned(b.Commit, "l", ""), "another tree": learned(b.Commit, b.Commit, "lt")} {
		if _, err := journal.Replay(append(start[:2:2], r)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := journal.Replay([]journal.Record{attempt1, learned("", "l", "lt")}); err == nil {
		t.Error("a commit before there is a base is taken")
	}
}

// TestAfter: the next commit with documents follows what the branch has of such commits, unless that is what it would be.
func TestAfter(t *testing.T) {
	b := base.Base
	learned := func(on, commit, tree, after string) journal.Record {
		return journal.Record{KnowledgeCommitted: &journal.KnowledgeCommitted{On: on, Commit: commit, Tree: tree, After: after}}
	}
	promoted := []journal.Record{
		{Intent: &journal.Intent{Sequence: 1, Commit: "k1", Tree: "t1", Delivery: "d1", OldDelivery: b.Commit, TreeVerdict: protocol.Valid}},
		{Done: &journal.Done{Sequence: 1}},
	}
	squashed := []journal.Record{{Squashed: &journal.Squashed{Commit: "s1", Old: "d1"}}}
	first, second := learned(b.Commit, "l1", "lt1", ""), learned("d1", "l2", "lt2", "l1")
	for name, c := range map[string]struct {
		records []journal.Record
		next    journal.KnowledgeCommitted
		there   string
		maybe   bool
		want    string
	}{
		"no such commit":                {nil, journal.KnowledgeCommitted{On: b.Commit, Tree: "lt1"}, "x", false, ""},
		"the same one":                  {[]journal.Record{first}, journal.KnowledgeCommitted{On: b.Commit, Tree: "lt1"}, "l1", false, ""},
		"other documents":               {[]journal.Record{first}, journal.KnowledgeCommitted{On: b.Commit, Tree: "lt9"}, "l1", true, "l1"},
		"other documents, no branch":    {[]journal.Record{first}, journal.KnowledgeCommitted{On: b.Commit, Tree: "lt9"}, "", true, ""},
		"other documents, foreign":      {[]journal.Record{first}, journal.KnowledgeCommitted{On: b.Commit, Tree: "lt9"}, "x", true, ""},
		"more work":                     {append([]journal.Record{first}, promoted...), journal.KnowledgeCommitted{On: "d1", Tree: "lt2"}, "l1", true, "l1"},
		"more work, before the push":    {append(append([]journal.Record{first}, promoted...), second), journal.KnowledgeCommitted{On: "d1", Tree: "lt2"}, "l1", true, "l1"},
		"more work, after the push":     {append(append([]journal.Record{first}, promoted...), second), journal.KnowledgeCommitted{On: "d1", Tree: "lt2"}, "l2", true, "l1"},
		"more work, the branch is gone": {append(append([]journal.Record{first}, promoted...), second), journal.KnowledgeCommitted{On: "d1", Tree: "lt2"}, "", true, ""},
		"more work once more":           {append(append([]journal.Record{first}, promoted...), second), journal.KnowledgeCommitted{On: "d1", Tree: "lt3"}, "l2", true, "l2"},
		"taken back":                    {[]journal.Record{first, learned(b.Commit, b.Commit, b.Tree, "")}, journal.KnowledgeCommitted{On: b.Commit, Tree: b.Tree}, "l1", true, "l1"},
		"wanted again":                  {[]journal.Record{first, learned(b.Commit, "l0", b.Tree, "l1")}, journal.KnowledgeCommitted{On: b.Commit, Tree: "lt1"}, "l1", true, ""},
		"an old history":                {append(append([]journal.Record{first}, promoted...), squashed...), journal.KnowledgeCommitted{On: "s1", Tree: "lt2"}, "l1", false, ""},
	} {
		s, err := journal.Replay(append([]journal.Record{attempt1, base}, c.records...))
		if err != nil || s.MayBeBehind(c.next) != c.maybe || s.After(c.next, c.there) != c.want {
			t.Errorf("%s: %v, maybe %t, after %q; want %t and %q", name, err, s.MayBeBehind(c.next), s.After(c.next, c.there), c.maybe, c.want)
		}
	}
	for name, records := range map[string][]journal.Record{
		"unknown":        {learned(b.Commit, "l2", "lt2", "l1")},
		"the work":       append([]journal.Record{first}, append(promoted, learned("d1", "l2", "lt2", b.Commit))...),
		"an old history": append([]journal.Record{first}, append(append(promoted, squashed...), learned("s1", "l2", "lt2", "l1"))...),
	} {
		if _, err := journal.Replay(append([]journal.Record{attempt1, base}, records...)); err == nil {
			t.Errorf("%s: a commit that follows it is taken", name)
		}
	}
}

// TestASnapshotWithoutLearned is of a version that does not list the commits with documents. The newest one is known, for who begins with it and for other readers, unless
// the history was replaced after it.
func TestASnapshotWithoutLearned(t *testing.T) {
	learned := func(commit, tree string) journal.Record {
		return journal.Record{KnowledgeCommitted: &journal.KnowledgeCommitted{On: base.Base.Commit, Commit: commit, Tree: tree}}
	}
	first := []journal.Record{attempt1, base, learned("l0", "lt0"), learned("l1", "lt1")}
	promoted := []journal.Record{
		{Intent: &journal.Intent{Sequence: 1, Commit: "k1", Tree: "t1", Delivery: "d1", OldDelivery: base.Base.Commit, TreeVerdict: protocol.Valid}}, {Done: &journal.Done{Sequence: 1}},
	}
	work := slices.Concat(first, promoted)
	replaced := slices.Concat(work, []journal.Record{{Squashed: &journal.Squashed{Commit: "s1", Old: "d1"}}})
	taken := slices.Concat(first, []journal.Record{learned(base.Base.Commit, base.Base.Tree)})
	for name, c := range map[string]struct {
		records []journal.Record
		// want is what follows if the branch is at the commit l1; an earlier one is not known.
		want string
	}{"documents": {first, "l1"}, "more work": {work, "l1"}, "the history was replaced": {replaced, ""}, "documents were taken back": {taken, ""}} {
		s, err := journal.Replay(c.records)
		if err != nil {
			t.Fatal(err)
		}
		s.Learned = nil
		snapshot := journal.Record{Snapshot: &journal.Snapshot{Segments: 1, State: s}}
		next := journal.KnowledgeCommitted{On: s.Promoted.Commit, Tree: "lt2"}
		for reader, read := range map[string][]journal.Record{"all": slices.Concat(c.records, []journal.Record{snapshot}), "the rest": {snapshot}, "twice": {snapshot, snapshot}} {
			got, err := journal.Replay(read)
			if err != nil || got.After(next, "l1") != c.want || got.After(next, "l0") != "" || got.MayBeBehind(next) != (c.want != "") {
				t.Errorf("%s, %s: %+v, %v", name, reader, got.Learned, err)
			}
		}
	}
}

// TestEveryPushIsAFastForward: whatever work and documents come, and whether or not the watchdog hears of a push, the next commit follows the branch, as long as
// the branch is at a commit of ours. It is the same commit before the push and after it.
func TestEveryPushIsAFastForward(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		records := []journal.Record{attempt1, base}
		parents, branch, pushed, works := map[string][]string{}, "", []string{""}, 0
		var behind func(commit, ancestor string) bool
		behind = func(commit, ancestor string) bool {
			for _, parent := range parents[commit] {
				if behind(parent, ancestor) {
					return true
				}
			}
			return commit == ancestor
		}
		next := func(s journal.State, documents string) journal.KnowledgeCommitted {
			made := journal.KnowledgeCommitted{On: s.Promoted.Commit, Commit: s.Promoted.Commit, Tree: s.Promoted.Tree}
			if documents != "" {
				made.Tree += "+" + documents
			}
			if s.MayBeBehind(made) {
				made.After = s.After(made, branch)
			}
			if documents != "" || made.After != "" {
				made.Commit = fmt.Sprintf("%s/%s<%s>", made.On, made.Tree, made.After)
				parents[made.Commit] = []string{made.On}
				if made.After != "" {
					parents[made.Commit] = append(parents[made.Commit], made.After)
				}
			}
			return made
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			s, err := journal.Replay(records)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "work") {
				works++
				i := journal.Intent{Sequence: int64(works), Commit: fmt.Sprint("k", works), Tree: fmt.Sprint("t", works), Delivery: fmt.Sprint("d", works), OldDelivery: s.Promoted.Commit, OldChain: s.Chain.Commit, TreeVerdict: protocol.Valid}
				parents[i.Delivery] = []string{i.OldDelivery}
				records = append(records, journal.Record{Intent: &i}, journal.Record{Done: &journal.Done{Sequence: i.Sequence}})
				if s, err = journal.Replay(records); err != nil {
					t.Fatal(err)
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "move") == 0 { // a user deletes the branch or brings an earlier commit back, or an earlier push ends late
				branch = rapid.SampledFrom(pushed).Draw(t, "branch")
			}
			documents := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "documents")
			made := next(s, documents)
			if s.Head() != (journal.Promoted{Commit: made.Commit, Tree: made.Tree}) {
				records = append(records, journal.Record{KnowledgeCommitted: &made})
			}
			if branch != "" && !behind(made.Commit, branch) {
				t.Fatalf("%s does not follow %s", made.Commit, branch)
			}
			if rapid.Bool().Draw(t, "push") {
				branch, pushed = made.Commit, append(pushed, made.Commit)
				if s, err = journal.Replay(records); err != nil {
					t.Fatal(err)
				}
				if again := next(s, documents); again != made {
					t.Fatalf("%+v after the push of %+v", again, made)
				}
			}
		}
	})
}
