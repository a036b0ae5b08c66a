// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/chain"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// repository in memory.
type repository struct {
	refs    map[string]string
	commits map[string]chain.Commit
	damaged map[string]bool           // commits and trees
	changes map[string][]judge.Change // by the tree after them
	broken  error                     // of every call
}

func (r *repository) Ref(name string) (string, error) { return r.refs[name], r.broken }

func (r *repository) Commit(id string) (chain.Commit, error) {
	c, ok := r.commits[id]
	if !ok || r.damaged[id] {
		return c, &chain.DamageError{Reason: "commit " + id + " is missing"}
	}
	return c, r.broken
}

func (r *repository) Tree(id string) error {
	if r.damaged[id] {
		return &chain.DamageError{Reason: "tree " + id + " is damaged"}
	}
	return r.broken
}

func (r *repository) Changes(_, after string) ([]judge.Change, error) {
	return r.changes[after], r.broken
}

// feature is a repository and the journal about it.
type feature struct {
	repository
	t    *testing.T
	data []byte
	head string
}

func (f *feature) note(r journal.Record) {
	f.t.Helper()
	line, sum, err := journal.Encode(r, f.head)
	if err != nil {
		f.t.Fatal(err)
	}
	f.data, f.head = append(f.data, line...), sum
}

// checkpoint notes a checkpoint and makes its commits.
func (f *feature) checkpoint(i journal.Intent) {
	f.t.Helper()
	i.Report.Sequence, i.Report.Settled = i.Sequence, i.Report.UnsettledReason == ""
	if i.Commit != i.OldChain {
		parent := i.OldChain
		if parent == "" {
			parent = "b"
		}
		f.commits[i.Commit] = chain.Commit{Tree: i.Tree, Parents: []string{parent}, Message: "Checkpoint\n\n" + chain.JournalTrailer + f.head + "\n"}
	}
	if i.Delivery != i.OldDelivery {
		f.commits[i.Delivery] = chain.Commit{Tree: i.Tree, Parents: []string{i.OldDelivery}, Message: "Work"}
	}
	f.note(journal.Record{Intent: &i})
	f.refs[protocol.RefChain], f.refs[protocol.RefDelivery] = i.Commit, i.Delivery
	f.note(journal.Record{Done: &journal.Done{Sequence: i.Sequence}})
}

// newFeature has three checkpoints: one promoted, one held, one where nothing was new; and then another promoted one.
func newFeature(t *testing.T) *feature {
	f := &feature{t: t, repository: repository{refs: map[string]string{protocol.RefBase: "b", protocol.RefDelivery: "b"},
		commits: map[string]chain.Commit{"b": {Tree: "bt"}}, damaged: map[string]bool{}}}
	f.note(journal.Record{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}})
	f.note(journal.Record{Base: &journal.Base{Commit: "b", Tree: "bt"}})
	f.checkpoint(journal.Intent{Sequence: 1, Commit: "k1", Tree: "t1", Delivery: "d1", OldDelivery: "b", TreeVerdict: protocol.Valid})
	f.checkpoint(journal.Intent{Sequence: 3, Commit: "k3", OldChain: "k1", Tree: "t3", Delivery: "d1", OldDelivery: "d1", TreeVerdict: protocol.Invalid,
		Report: protocol.CheckpointReport{Previous: 1}})
	f.checkpoint(journal.Intent{Sequence: 4, Commit: "k3", OldChain: "k3", Tree: "t3", Delivery: "d1", OldDelivery: "d1", TreeVerdict: protocol.Invalid,
		Report: protocol.CheckpointReport{Previous: 3}})
	f.checkpoint(journal.Intent{Sequence: 5, Commit: "k5", OldChain: "k3", Tree: "t5", Delivery: "d5", OldDelivery: "d1", TreeVerdict: protocol.Valid,
		Report: protocol.CheckpointReport{Previous: 4}})
	f.note(journal.Record{Delivered: &journal.Delivered{Commit: "d5", Branch: "x"}})
	return f
}

func (f *feature) verify(known string) (chain.Result, error) {
	records, _, err := journal.Decode(f.data)
	var corrupt *journal.CorruptError
	if err != nil && !errors.As(err, &corrupt) {
		f.t.Fatal(err)
	}
	return chain.Verify(records, corrupt, f, known)
}

func TestAWholeRecord(t *testing.T) {
	f := newFeature(t)
	for _, known := range []string{"", "k1", "k3", "k5"} {
		got, err := f.verify(known)
		want := chain.Result{Whole: true, Lines: 11, JournalHead: f.head, Checkpoints: 4, Deliveries: 2, Base: "b", Head: "k5", Delivery: "d5"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("known %q: %v (-want +got):\n%s", known, err, diff)
		}
	}
}

func TestWhatACrashLeavesIsWhole(t *testing.T) {
	for name, change := range map[string]func(*feature){
		"an empty journal": func(f *feature) { f.data = nil; f.refs = nil },
		"before the base": func(f *feature) {
			f.data = f.data[:bytes.IndexByte(f.data, '\n')+1]
			delete(f.refs, protocol.RefChain)
		},
		"before refs move":  func(f *feature) { f.cut(2); f.refs[protocol.RefChain], f.refs[protocol.RefDelivery] = "k3", "d1" },
		"before it is done": func(f *feature) { f.cut(2) },
		"a torn line":       func(f *feature) { f.data = append(f.data, `{"version":1,"prev`...) },
	} {
		f := newFeature(t)
		change(f)
		if got, err := f.verify(""); err != nil || !got.Whole {
			t.Errorf("%s: %v, %+v", name, err, got.Broken)
		}
	}
}

// cut removes lines from the end of the journal.
func (f *feature) cut(lines int) {
	all := bytes.SplitAfter(f.data, []byte("\n"))
	f.data = bytes.Join(all[:len(all)-1-lines], nil)
}

func TestTheFirstBrokenLinkIsNamed(t *testing.T) {
	amend := func(id string, change func(*chain.Commit)) func(*feature) {
		return func(f *feature) {
			c := f.commits[id]
			change(&c)
			f.commits[id] = c
		}
	}
	for name, tc := range map[string]struct {
		change   func(*feature)
		known    string
		wantLink string
		want     string
	}{
		"a missing base":           {change: func(f *feature) { f.damaged["b"] = true }, wantLink: "base", want: "commit b is missing"},
		"a damaged base tree":      {change: func(f *feature) { f.damaged["bt"] = true }, wantLink: "base", want: "tree bt is damaged"},
		"another base tree":        {change: amend("b", func(c *chain.Commit) { c.Tree = "x" }), wantLink: "base", want: "has the tree x"},
		"a missing checkpoint":     {change: func(f *feature) { delete(f.commits, "k3") }, wantLink: "checkpoint 3", want: "commit k3 is missing"},
		"a damaged tree":           {change: func(f *feature) { f.damaged["t3"], f.damaged["t5"] = true, true }, wantLink: "checkpoint 3", want: "tree t3 is damaged"},
		"another parent":           {change: amend("k5", func(c *chain.Commit) { c.Parents = []string{"k1"} }), wantLink: "checkpoint 5", want: "follows k1, and the journal has it after k3"},
		"two parents":              {change: amend("k5", func(c *chain.Commit) { c.Parents = []string{"k3", "z"} }), wantLink: "checkpoint 5", want: "k3 and z"},
		"a journal of later":       {change: amend("k1", func(c *chain.Commit) { c.Message = chain.JournalTrailer + "ff" }), wantLink: "checkpoint 1", want: "somebody wrote the journal again"},
		"no journal":               {change: amend("k1", func(c *chain.Commit) { c.Message = "x" }), wantLink: "checkpoint 1", want: "(nothing)"},
		"a foreign delivery":       {change: amend("d5", func(c *chain.Commit) { c.Tree = "t3" }), wantLink: "delivery of checkpoint 5", want: "has the tree t3"},
		"a delivery of nobody":     {change: amend("d1", func(c *chain.Commit) { c.Parents = nil }), wantLink: "delivery of checkpoint 1", want: "after b"},
		"an edited line":           {change: func(f *feature) { f.data = bytes.Replace(f.data, []byte("Invalid"), []byte("Valid"), 1) }, wantLink: "journal line 5", want: "not what was written"},
		"a cut end":                {change: func(f *feature) { f.cut(3) }, wantLink: "ref " + protocol.RefChain, want: "names k5, and the journal ends with k3"},
		"chain and journal cut":    {change: func(f *feature) { f.cut(3); f.refs[protocol.RefChain], f.refs[protocol.RefDelivery] = "k3", "d1" }, known: "k5", wantLink: "commit k5", want: "does not hold it"},
		"a moved delivery":         {change: func(f *feature) { f.refs[protocol.RefDelivery] = "k5" }, wantLink: "ref " + protocol.RefDelivery, want: "names k5"},
		"an emptied journal":       {change: func(f *feature) { f.data = nil }, wantLink: "ref " + protocol.RefChain, want: "has no base"},
		"a lost ref":               {change: func(f *feature) { delete(f.refs, protocol.RefBase) }, wantLink: "ref " + protocol.RefBase, want: "names nothing"},
		"a push of something else": {change: func(f *feature) { f.note(journal.Record{Delivered: &journal.Delivered{Commit: "k3", Branch: "x"}}) }, wantLink: "journal line 12", want: "never promoted"},
		"a promotion of the invalid": {change: func(f *feature) {
			f.checkpoint(journal.Intent{Sequence: 6, Commit: "k6", OldChain: "k5", Tree: "t6", Delivery: "d6", OldDelivery: "d5", TreeVerdict: protocol.Invalid,
				Report: protocol.CheckpointReport{Previous: 5}})
		}, wantLink: "delivery of checkpoint 6", want: "verdict Invalid"},
		"a promotion of the unsettled": {change: func(f *feature) {
			f.checkpoint(journal.Intent{Sequence: 6, Commit: "k6", OldChain: "k5", Tree: "t6", Delivery: "d6", OldDelivery: "d5", TreeVerdict: protocol.Valid,
				Report: protocol.CheckpointReport{Previous: 5, UnsettledReason: "moving"}})
		}, wantLink: "delivery of checkpoint 6", want: "hold the workspace still"},
		"a wrong predecessor": {change: func(f *feature) {
			f.checkpoint(journal.Intent{Sequence: 6, Commit: "k6", OldChain: "k5", Tree: "t6", Delivery: "d5", OldDelivery: "d5",
				Report: protocol.CheckpointReport{Previous: 4}})
		}, wantLink: "checkpoint 6", want: "names checkpoint 4"},
		"a record that cannot follow": {change: func(f *feature) { f.note(journal.Record{Done: &journal.Done{Sequence: 9}}) }, wantLink: "journal line 12", want: "without its intent"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeature(t)
			tc.change(f)
			got, err := f.verify(tc.known)
			if err != nil || got.Whole || got.Broken == nil {
				t.Fatalf("%v, %+v, want a broken link", err, got)
			}
			if got.Broken.Link != tc.wantLink || !strings.Contains(got.Broken.Reason, tc.want) {
				t.Errorf("broken at %q: %q, want %q with %q", got.Broken.Link, got.Broken.Reason, tc.wantLink, tc.want)
			}
		})
	}
}

func TestAuditPromotesWithItsVerdict(t *testing.T) {
	f := newFeature(t)
	f.checkpoint(journal.Intent{Sequence: 6, Commit: "k6", OldChain: "k5", Tree: "t6", Delivery: "d6", OldDelivery: "d5", TreeVerdict: protocol.Invalid,
		Report: protocol.CheckpointReport{Previous: 5, Audit: true}})
	if got, err := f.verify(""); err != nil || !got.Whole {
		t.Errorf("%v, %+v", err, got.Broken)
	}
}

// squash notes that the delivery became one commit on the base.
func (f *feature) squash(commit, parent, tree, old string) {
	f.commits[commit] = chain.Commit{Tree: tree, Parents: []string{parent}, Message: "Work"}
	f.note(journal.Record{Squashed: &journal.Squashed{Commit: commit, Old: old, Reason: "because", Policy: "p"}})
}

func TestASquashedDelivery(t *testing.T) {
	f := newFeature(t)
	f.squash("s", "b", "t5", "d5")
	if got, err := f.verify(""); err != nil || !got.Whole || got.Delivery != "s" {
		t.Errorf("before the ref moves: %v, %+v", err, got.Broken)
	}
	f.refs[protocol.RefDelivery] = "s"
	f.note(journal.Record{Delivered: &journal.Delivered{Commit: "s", Branch: "x"}})
	f.checkpoint(journal.Intent{Sequence: 6, Commit: "k6", OldChain: "k5", Tree: "t6", Delivery: "d6", OldDelivery: "s", TreeVerdict: protocol.Valid,
		Report: protocol.CheckpointReport{Previous: 5}})
	if got, err := f.verify(""); err != nil || !got.Whole || got.Delivery != "d6" {
		t.Errorf("%v, %+v", err, got)
	}
	for name, tc := range map[string]struct{ parent, tree, old, want string }{
		"another parent": {"d1", "t5", "d5", "follows d1"},
		"another tree":   {"b", "t3", "d5", "has the tree t3"},
		"not the head":   {"b", "t5", "d1", "the delivery ends with d5"},
	} {
		f := newFeature(t)
		f.squash("s", tc.parent, tc.tree, tc.old)
		if got, err := f.verify(""); err != nil || got.Whole || !strings.Contains(got.Broken.Reason, tc.want) {
			t.Errorf("%s: %v, %+v", name, err, got.Broken)
		}
	}
}

// learn notes that a commit with documents follows the delivery.
func (f *feature) learn(commit, parent, tree, on string) {
	f.commits[commit] = chain.Commit{Tree: tree, Parents: []string{parent}, Message: "Learned"}
	f.note(journal.Record{KnowledgeCommitted: &journal.KnowledgeCommitted{On: on, Commit: commit, Tree: "t5"}})
}

// TestACommitWithDocuments follows the delivery and may be pushed. Without its record it may not.
func TestACommitWithDocuments(t *testing.T) {
	f := newFeature(t)
	f.learn("l", "d5", "t5", "d5")
	f.note(journal.Record{Delivered: &journal.Delivered{Commit: "l", Branch: "x"}})
	if got, err := f.verify(""); err != nil || !got.Whole || got.Delivery != "l" {
		t.Errorf("the commit is the delivery: %v, %+v", err, got)
	}
	f.note(journal.Record{KnowledgeCommitted: &journal.KnowledgeCommitted{On: "d5", Commit: "d5", Tree: "t5"}}) // taken back
	f.checkpoint(journal.Intent{Sequence: 6, Commit: "k6", OldChain: "k5", Tree: "t6", Delivery: "d6", OldDelivery: "d5", TreeVerdict: protocol.Valid,
		Report: protocol.CheckpointReport{Previous: 5}})
	if got, err := f.verify(""); err != nil || !got.Whole || got.Delivery != "d6" {
		t.Errorf("%v, %+v", err, got.Broken)
	}
	for name, tc := range map[string]struct{ parent, tree, on, want string }{
		"another parent": {"d1", "t5", "d5", "follows d1"},
		"another tree":   {"d5", "t3", "d5", "has the tree t3"},
		"not the head":   {"d1", "t5", "d1", `the delivery ends with "d5"`},
	} {
		f := newFeature(t)
		f.learn("l", tc.parent, tc.tree, tc.on)
		if got, err := f.verify(""); err != nil || got.Whole || !strings.Contains(got.Broken.Reason, tc.want) {
			t.Errorf("%s: %v, %+v", name, err, got.Broken)
		}
	}
	f = newFeature(t)
	f.note(journal.Record{Delivered: &journal.Delivered{Commit: "l", Branch: "x"}})
	if got, err := f.verify(""); err != nil || got.Whole || !strings.Contains(got.Broken.Reason, "never promoted") {
		t.Errorf("%v, %+v", err, got)
	}
}

// TestOnlyDocumentsOfReviewers are in the commit with documents, as the journal has them.
func TestOnlyDocumentsOfReviewers(t *testing.T) {
	const names, index = "docs/knowledge/conventions/names.md", "docs/knowledge/_index.md"
	for name, tc := range map[string]struct {
		change judge.Change
		whole  bool
	}{
		"a document":        {judge.Change{Path: names, New: judge.Entry{Mode: judge.ModeFile, ID: "5626abf0f72e58d7a153368ba57db4c673c0e171"}}, true},
		"the index":         {judge.Change{Path: index, New: judge.Entry{Mode: judge.ModeFile, ID: "x"}}, true},
		"another text":      {judge.Change{Path: names, New: judge.Entry{Mode: judge.ModeFile, ID: "f719efd430d52bcfc8566a43b2eb655688d38871"}}, false},
		"a program":         {judge.Change{Path: names, New: judge.Entry{Mode: judge.ModeExecutable, ID: "5626abf0f72e58d7a153368ba57db4c673c0e171"}}, false},
		"a deleted one":     {judge.Change{Path: names, Old: judge.Entry{Mode: judge.ModeFile, ID: "x"}}, false},
		"a deleted index":   {judge.Change{Path: index, Old: judge.Entry{Mode: judge.ModeFile, ID: "x"}}, false},
		"a linked index":    {judge.Change{Path: index, New: judge.Entry{Mode: judge.ModeSymlink, ID: "x"}}, false},
		"nobody's document": {judge.Change{Path: "docs/knowledge/lessons/flush.md", New: judge.Entry{Mode: judge.ModeFile, ID: "x"}}, false},
		"a file":            {judge.Change{Path: "web/a.html", New: judge.Entry{Mode: judge.ModeFile, ID: "x"}}, false},
	} {
		f := newFeature(t)
		f.note(journal.Record{Reviewed: &journal.Reviewed{Reviewer: protocol.SourceCodeStyle, Tree: "t5", Outcome: protocol.ReviewAligned, Documents: []journal.Written{{Path: names, Text: "one\n"}}}})
		f.commits["l"] = chain.Commit{Tree: "lt", Parents: []string{"d5"}, Message: "Learned"}
		f.changes = map[string][]judge.Change{"lt": {tc.change}}
		f.note(journal.Record{KnowledgeCommitted: &journal.KnowledgeCommitted{On: "d5", Commit: "l", Tree: "lt"}})
		want := "commit l changes " + tc.change.Path + ", and no reviewer has written that"
		if got, err := f.verify(""); err != nil || got.Whole != tc.whole || !got.Whole && got.Broken.Reason != want {
			t.Errorf("%s: %v, %+v", name, err, got.Broken)
		}
	}
}

// TestACommitAfterEarlierDocuments follows the delivery and a commit that the branch had, in this order.
func TestACommitAfterEarlierDocuments(t *testing.T) {
	for name, tc := range map[string]struct {
		parents []string
		after   string
		want    string
	}{
		"both":                 {[]string{"d6", "l"}, "l", ""},
		"not in the journal":   {[]string{"d6", "l"}, "", "follows d6 and l, and the journal has it after d6"},
		"not in the commit":    {[]string{"d6"}, "l", "follows d6, and the journal has it after d6 and l"},
		"in another order":     {[]string{"l", "d6"}, "l", "follows l and d6"},
		"a third one":          {[]string{"d6", "l", "b"}, "l", "follows d6 and l and b"},
		"work that was judged": {[]string{"d6", "d1"}, "d1", "which is not a commit with documents"},
	} {
		f := newFeature(t)
		f.learn("l", "d5", "t5", "d5")
		f.checkpoint(journal.Intent{Sequence: 6, Commit: "k6", OldChain: "k5", Tree: "t6", Delivery: "d6", OldDelivery: "d5", TreeVerdict: protocol.Valid,
			Report: protocol.CheckpointReport{Previous: 5}})
		f.commits["m"] = chain.Commit{Tree: "t6", Parents: tc.parents, Message: "Learned"}
		f.note(journal.Record{KnowledgeCommitted: &journal.KnowledgeCommitted{On: "d6", Commit: "m", Tree: "t6", After: tc.after}})
		f.note(journal.Record{Delivered: &journal.Delivered{Commit: "m", Branch: "x"}})
		got, err := f.verify("")
		if err != nil || got.Whole != (tc.want == "") || !got.Whole && !strings.Contains(got.Broken.Reason, tc.want) {
			t.Errorf("%s: %v, %+v", name, err, got.Broken)
		}
		if got.Whole && got.Delivery != "m" {
			t.Errorf("%s: the delivery is %s", name, got.Delivery)
		}
	}
}

// What the workspace could not become was never promoted, and may not be pushed.
func TestWhatWasWithheldIsNotPromoted(t *testing.T) {
	f := newFeature(t)
	i := journal.Intent{Sequence: 6, Commit: "k6", OldChain: "k5", Tree: "t6", Delivery: "d6", OldDelivery: "d5", Restore: "t6", TreeVerdict: protocol.Valid,
		Report: protocol.CheckpointReport{Sequence: 6, Previous: 5, Settled: true}}
	f.commits["k6"] = chain.Commit{Tree: "t6", Parents: []string{"k5"}, Message: chain.JournalTrailer + f.head}
	f.note(journal.Record{Intent: &i})
	f.note(journal.Record{Withheld: &journal.Withheld{Sequence: 6, Reason: "no space left"}})
	f.note(journal.Record{Done: &journal.Done{Sequence: 6}})
	f.refs[protocol.RefChain] = "k6"
	if got, err := f.verify(""); err != nil || !got.Whole || got.Delivery != "d5" {
		t.Errorf("%v, %+v", err, got.Broken)
	}
	f.note(journal.Record{Delivered: &journal.Delivered{Commit: "d6", Branch: "x"}})
	if got, err := f.verify(""); err != nil || got.Whole || !strings.Contains(got.Broken.Reason, "never promoted") {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestWhatCannotBeReadIsNotCalledBroken(t *testing.T) {
	f := newFeature(t)
	f.broken = errors.New("no memory")
	if got, err := f.verify(""); err == nil || got.Broken != nil || got.Whole {
		t.Errorf("%v, %+v, want the error", err, got)
	}
}

// A checkpoint whose content was dropped is a gap that the journal explains. What it does not explain, or what was promoted,
// must be there.
func TestDroppedContentIsAGapAndNoBreak(t *testing.T) {
	drop := func(f *feature, sequence int64, tree string) {
		f.note(journal.Record{Dropped: &journal.Dropped{Budget: 1, Policy: "p", Checkpoints: []journal.DroppedCheckpoint{{Sequence: sequence, Tree: tree}}}})
	}
	f := newFeature(t)
	f.damaged["t3"] = true
	drop(f, 3, "t3")
	if got, err := f.verify(""); err != nil || !got.Whole || got.Dropped != 1 || len(got.Gaps) != 1 {
		t.Errorf("%v, %+v, broken %+v", err, got, got.Broken)
	}
	for name, tc := range map[string]struct {
		missing  string
		sequence int64
		tree     string
		want     string
	}{
		"another tree":          {"t3", 3, "t1", "tree t3 is damaged"},
		"another checkpoint":    {"t3", 1, "t1", "tree t3 is damaged"},
		"a promoted tree":       {"t1", 1, "t1", "tree t1 is damaged"},
		"no such checkpoint":    {"", 2, "t2", "there is no such checkpoint"},
		"what is needed still":  {"", 5, "t5", "still needed"},
		"a checkpoint to come":  {"", 9, "t9", "the newest is 5"},
		"a tree that it is not": {"", 3, "t1", "there is no such checkpoint"},
	} {
		f := newFeature(t)
		f.damaged[tc.missing] = true
		drop(f, tc.sequence, tc.tree)
		if got, err := f.verify(""); err != nil || got.Whole || !strings.Contains(got.Broken.Reason, tc.want) {
			t.Errorf("%s: %v, broken %+v, want %q", name, err, got.Broken, tc.want)
		}
	}
}
