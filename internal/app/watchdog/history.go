// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// Bounds of the work on a history, counted in judged paths: at about 10 µs each, 10 s.
const (
	maxHistoryPaths = 1_000_000
	// commitCost is what a commit costs beside its paths: two small git processes.
	commitCost = 500
)

// judgeHistory judges the commits between base and head as the head was judged: what base…commit changes, under the policy
// in effect now. That is what somebody who checks the commit out would get; parent…commit would let a violation pass that
// two commits make together. It says what the newest commit that fails breaks, and nothing where every one passes.
func (r *run) judgeHistory(ctx context.Context, o contract.Orders) (string, error) {
	base, err := objects.ParseID(r.journal().Base.Commit)
	if err != nil {
		return "", err
	}
	head, err := objects.ParseID(r.journal().Promoted.Commit)
	if err != nil {
		return "", err
	}
	memory := r.memory.Beside() // neighbours have most of their changes in common
	spent := 0
	tree := objects.ID{}
	for id, first := head, true; id != base; first = false {
		c, err := r.repo.ReadCommit(ctx, id)
		if err != nil {
			return "", err
		}
		if len(c.Parents) != 1 {
			return "", fmt.Errorf("%w: commit %s of the delivery has %d parents", errCorrupt, id, len(c.Parents))
		}
		if !first && c.Tree != tree {
			j, paths, err := r.judgeCommit(ctx, o, c.Tree, memory)
			if err != nil {
				return "", err
			}
			if j.Verdict != judge.Valid {
				return clip(fmt.Sprintf("commit %s breaks a rule of the policy in effect now: %s", id.String()[:12], judge.Summary(j)), maxFault), nil
			}
			if spent += paths + commitCost; spent > maxHistoryPaths {
				return fmt.Sprintf("it is too long to be judged again: more than %d changed paths up to commit %s", maxHistoryPaths, id.String()[:12]), nil
			}
		}
		tree, id = c.Tree, c.Parents[0]
	}
	return "", nil
}

// judgeCommit judges a tree against the base, at the cost of what differs. It gives the number of those paths.
func (r *run) judgeCommit(ctx context.Context, o contract.Orders, tree objects.ID, memory *judge.Memory) (judge.Judgement, int, error) {
	base, err := objects.ParseID(r.journal().Base.Tree)
	if err != nil {
		return judge.Judgement{}, 0, err
	}
	changes, err := r.repo.Between(ctx, base, tree)
	if err != nil {
		return judge.Judgement{}, 0, err
	}
	in := r.evidence(ctx, tree, changes, occasion{plan: o.Plan, policy: o.Policy, orders: o})
	in.Memory = memory
	j, err := judge.Judge(ctx, in)
	return j, len(changes), err
}

// squash makes the delivery one commit on the base, with the tree, the author and the message of the head.
func (r *run) squash(ctx context.Context, o contract.Orders, why string) (string, error) {
	s := r.journal()
	if err := r.volume.guard(); err != nil {
		return "", err
	}
	head, err := objects.ParseID(s.Promoted.Commit)
	if err != nil {
		return "", err
	}
	c, err := r.repo.ReadCommit(ctx, head)
	if err != nil {
		return "", err
	}
	base, err := objects.ParseID(s.Base.Commit)
	if err != nil {
		return "", err
	}
	c.Parents = []objects.ID{base}
	id, err := r.repo.WriteCommit(c)
	if err == nil {
		err = r.probe("squash written")
	}
	if err == nil {
		err = r.book.Note(journal.Record{Squashed: &journal.Squashed{Commit: id.String(), Old: s.Promoted.Commit, Reason: why, Policy: o.Policy.Hash}})
	}
	if err == nil {
		err = r.probe("squash journaled")
	}
	if err == nil {
		err = r.replace(ctx)
	}
	r.Log.InfoContext(ctx, "The history is delivered as one commit", "commit", id.String(), "instead of", s.Promoted.Commit, "reason", why)
	return id.String(), err
}

// replace moves the delivery to the one commit that the journal has in its place, unless it is there already. The commits
// that it replaces keep a ref: the record of them stays whole.
func (w *workshop) replace(ctx context.Context) error {
	q := w.journal().Squashed
	if q == nil {
		return nil
	}
	old, err := objects.ParseID(q.Old)
	if err != nil {
		return err
	}
	id, err := objects.ParseID(q.Commit)
	if err != nil {
		return err
	}
	now, err := w.repo.Ref(ctx, contract.RefDelivery)
	if err != nil || now != old {
		return err
	}
	err = w.repo.UpdateRefs(ctx, []git.RefUpdate{
		{Name: contract.RefReplaced + "/" + q.Old, New: old}, {Name: contract.RefDelivery, Old: old, New: id},
	})
	if err != nil {
		return fmt.Errorf("replace the delivery: %w", err)
	}
	return w.probe("squash moved")
}
