// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

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
	for name, r := range map[string]journal.Record{"another delivery": learned("other", "l", "lt"), "no commit": learned(b.Commit, "", "lt"), "no tree": learned(b.Commit, "l", "")} {
		if _, err := journal.Replay(append(start[:2:2], r)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := journal.Replay([]journal.Record{attempt1, learned("", "l", "lt")}); err == nil {
		t.Error("a commit before there is a base is taken")
	}
}
