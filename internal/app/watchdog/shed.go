// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/retention"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// tidyPause is how often it is looked whether a tidying that was called off has ended.
const tidyPause = 5 * time.Millisecond

// shed drops the content of the oldest checkpoints once what was never promoted takes more than the policy's budget. It is
// called between two acts, when nothing else writes to the repository. A failure is no reason not to work: the next
// checkpoint tries again, and a full volume tells by itself.
func (r *run) shed(ctx context.Context, o contract.Orders) error {
	budget := o.Policy.UnpromotedBytes
	added, err := r.repo.Added()
	if err != nil || budget <= 0 || added <= max(budget, r.shedAbove) || r.journal().Pending != nil {
		return nil
	}
	for !r.tidying.CompareAndSwap(false, true) {
		if ctx.Err() != nil {
			return nil
		}
		if stop := r.stopTidy.Load(); stop != nil { // it is done again, and dropping leaves less to tidy
			(*stop)()
		}
		pause(ctx, tidyPause)
	}
	defer r.tidying.Store(false)
	if err = r.dropContent(ctx, o, added); err == nil {
		added, err = r.repo.Added()
	}
	r.shedAbove = added + budget/4 // what it looked at it need not look at again soon
	if err != nil && !fatal(err) && ctx.Err() == nil {
		r.Log.WarnContext(ctx, "Content that was never promoted is not dropped", "error", err.Error())
	}
	if fatal(err) {
		return err
	}
	return nil
}

func (r *run) dropContent(ctx context.Context, o contract.Orders, added int64) error {
	i, err := r.takeInventory(ctx, o)
	if err != nil {
		return err
	}
	budget := o.Policy.UnpromotedBytes
	gone := retention.Shed(i.contents, budget)
	strays := added - i.bytes
	if len(gone) == 0 && strays < budget/2 {
		return nil
	}
	if len(gone) > 0 {
		d := journal.Dropped{Budget: budget, Policy: o.Policy.Hash}
		for _, sequence := range gone {
			h := i.holds[sequence]
			d.Checkpoints = append(d.Checkpoints, journal.DroppedCheckpoint{Sequence: sequence, Tree: h.tree})
			for _, id := range h.ids {
				i.reach.Remove(id)
			}
		}
		if err := r.book.Note(journal.Record{Dropped: &d}); err != nil {
			return err
		}
	}
	if err := r.probe("drop journaled"); err != nil {
		return err
	}
	if r.engine != nil {
		r.engine.Forget()
	}
	r.Log.InfoContext(ctx, "Dropping content that was never promoted", "checkpoints", len(gone), "budget", budget, "bytes", added, "unreached", max(strays, 0))
	if err := r.repo.Retain(ctx, i.reach); err != nil {
		return err
	}
	return r.probe("content dropped")
}

// inventory is what the trusted repository holds beside the history of the base.
type inventory struct {
	// reach is everything that is needed, and everything that checkpoints hold.
	reach *git.Reach
	// contents of the checkpoints that were never promoted, from the oldest to the newest, after what is kept in any case.
	contents []retention.Content
	// holds says what each of them holds alone.
	holds map[int64]hold
	// bytes on disk of everything that is reached, without the base's tree.
	bytes int64
}

// neededTrees are the last state of the workspace, what attempts start from, and the checkpoints that a Checkpoint object
// or a request names.
func (w *workshop) neededTrees(s journal.State, l ledger, o contract.Orders) []string {
	needed := []string{s.Workspace.Tree, s.Start}
	if w.engine != nil {
		if _, now, err := w.engine.Trees(); err == nil {
			needed = append(needed, now.ID.String())
		}
	}
	named := l.named(o)
	for _, c := range slices.Backward(l.checkpoints) {
		if !s.Dropped[c.sequence] && (named[c.sequence] || c.sequence == s.Chain.Sequence) {
			needed = append(needed, c.tree)
		}
	}
	return needed
}

// hold is what a checkpoint holds that nothing kept and no newer checkpoint does.
type hold struct {
	tree string
	ids  []objects.ID
}

// takeInventory finds out what is needed, what is there beside it, and what that takes. Everything promoted is needed; so
// are the last state of the workspace and what attempts start from, and every checkpoint that a Checkpoint object or a
// request names.
func (w *workshop) takeInventory(ctx context.Context, o contract.Orders) (*inventory, error) {
	records, err := w.book.records()
	if err != nil {
		return nil, err
	}
	s := w.journal()
	l := ledgerOf(records)
	i := &inventory{reach: w.repo.NewReach(), holds: map[int64]hold{}}
	if _, err := i.add(ctx, s.Base.Tree); err != nil {
		return nil, err
	}
	for _, tree := range append(l.promoted, s.Promoted.Tree) {
		if _, err := i.measure(ctx, w.repo, tree); err != nil {
			return nil, err
		}
	}
	needed := w.neededTrees(s, l, o)
	stays := map[string]bool{s.Base.Tree: true, s.Promoted.Tree: true}
	for _, tree := range slices.Concat(l.promoted, needed) {
		stays[tree] = true
	}
	kept := retention.Content{Kept: true}
	for _, tree := range needed {
		h, err := i.measure(ctx, w.repo, tree)
		if err != nil {
			return nil, err
		}
		kept.Bytes += h.bytes
	}
	for _, c := range slices.Backward(l.checkpoints) {
		if s.Dropped[c.sequence] || stays[c.tree] {
			continue
		}
		h, err := i.measure(ctx, w.repo, c.tree)
		if err != nil {
			return nil, fmt.Errorf("checkpoint %d: %w", c.sequence, err)
		}
		i.holds[c.sequence] = hold{tree: c.tree, ids: h.ids}
		i.contents = append(i.contents, retention.Content{Sequence: c.sequence, Bytes: h.bytes})
	}
	i.contents = append(i.contents, kept)
	slices.Reverse(i.contents)
	for _, id := range l.commits {
		i.reach.Add(idOf(id))
	}
	return i, nil
}

// measured is what a tree adds to what is reached already.
type measured struct {
	ids   []objects.ID
	bytes int64
}

func (i *inventory) add(ctx context.Context, tree string) ([]objects.ID, error) {
	id, err := objects.ParseID(tree)
	if err != nil {
		return nil, err
	}
	return i.reach.AddTree(ctx, id)
}

func (i *inventory) measure(ctx context.Context, repo *git.Repository, tree string) (measured, error) {
	ids, err := i.add(ctx, tree)
	if err != nil {
		return measured{}, err
	}
	bytes, err := repo.OnDisk(ctx, ids)
	i.bytes += bytes
	return measured{ids: ids, bytes: bytes}, err
}

// idOf is an id that the journal holds; the zero ID, which no object has, for one that is none.
func idOf(text string) objects.ID {
	id, _ := objects.ParseID(text)
	return id
}

// ledger is what the journal says of checkpoints and commits.
type ledger struct {
	// checkpoints with a commit of their own, in order.
	checkpoints []ledgerEntry
	// records of all checkpoints as Checkpoint objects, in order.
	records  []retention.Record
	promoted []string
	commits  []string
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
			l.records = append(l.records, retention.Record{Name: naming.Checkpoint("", i.Sequence), Sequence: i.Sequence,
				Valid: i.Report.Verdict == "Valid", Invalid: i.Report.Verdict == "Invalid",
				Promoted: i.Report.Action == contract.ActionPromoted || i.Report.Action == contract.ActionPartlyPromoted})
		case r.Withheld != nil:
			delete(promoted, r.Withheld.Sequence)
			if n, known := at[r.Withheld.Sequence]; known {
				l.records[n].Promoted = false
			}
		case r.Squashed != nil:
			l.commits = append(l.commits, r.Squashed.Commit, r.Squashed.Old)
		}
	}
	l.promoted = slices.Collect(maps.Values(promoted))
	return l
}

// named are the checkpoints that a Checkpoint object names, by the same rule by which the manager keeps those, or that an
// open request names. Without orders there is no budget, and nothing goes.
func (l ledger) named(o contract.Orders) map[int64]bool {
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
