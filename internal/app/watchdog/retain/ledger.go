// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package retain

import (
	"maps"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/retention"
)

// ledger is what the journal says of checkpoints and commits.
type ledger struct {
	// checkpoints with a commit of their own, oldest first.
	checkpoints []ledgerEntry
	// records of all checkpoints as Checkpoint objects, oldest first.
	records  []retention.Checkpoint
	promoted []string
	// learned are the trees of the commits with the documents of reviewers.
	learned []string
	commits []string
}

type ledgerEntry struct {
	sequence int64
	tree     string
}

func ledgerOf(records []journal.Record) ledger {
	var l ledger
	at := map[int64]int{}
	promoted := map[int64]string{}
	for _, r := range records {
		switch {
		case r.Intent != nil:
			i := *r.Intent
			l.commits = append(l.commits, i.Commit, i.Delivery)
			if i.Delivery != i.OldDelivery {
				promoted[i.Sequence] = i.Promoted()
			}
			if i.Commit != i.OldChain {
				l.checkpoints = append(l.checkpoints, ledgerEntry{sequence: i.Sequence, tree: i.Tree})
			}
			at[i.Sequence] = len(l.records)
			l.records = append(l.records, retention.Checkpoint{Name: naming.Checkpoint("", i.Sequence), Sequence: i.Sequence,
				Valid: i.Report.Verdict == "Valid", Invalid: i.Report.Verdict == "Invalid",
				Promoted: i.Report.Action == protocol.ActionPromoted || i.Report.Action == protocol.ActionPartlyPromoted})
		case r.Withheld != nil:
			delete(promoted, r.Withheld.Sequence)
			if n, known := at[r.Withheld.Sequence]; known {
				l.records[n].Promoted = false
			}
		case r.Squashed != nil:
			l.commits = append(l.commits, r.Squashed.Commit, r.Squashed.Old)
		case r.KnowledgeCommitted != nil:
			l.commits, l.learned = append(l.commits, r.KnowledgeCommitted.Commit), append(l.learned, r.KnowledgeCommitted.Tree)
		}
	}
	l.promoted = slices.Collect(maps.Values(promoted))
	return l
}

// named are the checkpoints that a Checkpoint object names, by the same rule by which the manager keeps those, or that an
// open request names. Without orders there is no budget, and nothing goes.
func (l ledger) named(o protocol.Orders) map[int64]bool {
	named := map[int64]bool{}
	for _, r := range retention.Left(l.records, o.Policy.KeepCheckpoints) {
		named[r.Sequence] = true
	}
	for _, r := range o.Requests {
		if r.Rollback != nil {
			named[r.Rollback.Checkpoint] = true
		}
	}
	return named
}
