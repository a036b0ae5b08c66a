// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// Bounds of the work on a history, counted in checked paths: at about 10 µs each, 10 s.
const (
	maxHistoryPaths = 1_000_000
	// commitCost is what a commit costs in addition to its paths: two small git processes.
	commitCost = 500
)

// judgeHistory checks the commits between base and head as the head was checked: what base…commit changes, under the policy
// in effect now. That is what somebody who checks the commit out would get; parent…commit would let a violation pass that
// two commits make together. It says what the newest commit that fails breaks, and nothing where every one passes.
func (s *Service) judgeHistory(ctx context.Context, o protocol.Orders) (string, error) {
	base, err := objects.ParseID(s.Journal.State().Base.Commit)
	if err != nil {
		return "", err
	}
	head, err := objects.ParseID(s.Journal.State().Promoted.Commit)
	if err != nil {
		return "", err
	}
	judgeCommit := s.Judge.Neighbours(checkpoint.TermsOf(o))
	spent := 0
	tree := objects.ID{}
	for id, first := head, true; id != base; first = false {
		c, err := s.Repository.ReadCommit(ctx, id)
		if err != nil {
			return "", err
		}
		if len(c.Parents) != 1 {
			return "", fmt.Errorf("%w: commit %s of the delivery has %d parents", trusted.ErrCorrupt, id, len(c.Parents))
		}
		if !first && c.Tree != tree {
			j, paths, err := judgeCommit(ctx, c.Tree)
			if err != nil {
				return "", err
			}
			if j.Verdict != protocol.Valid {
				return plain.CutBytes(fmt.Sprintf("commit %s breaks a rule of the policy in effect now: %s", id.String()[:12], judge.Summary(j)), faults.MaxMessage), nil
			}
			if spent += paths + commitCost; spent > maxHistoryPaths {
				return fmt.Sprintf("it is too long to be checked again: more than %d changed paths up to commit %s", maxHistoryPaths, id.String()[:12]), nil
			}
		}
		tree, id = c.Tree, c.Parents[0]
	}
	return "", nil
}

// squash makes the delivery one commit on the base, with the tree, the author and the message of the head.
func (s *Service) squash(ctx context.Context, o protocol.Orders, why string) (string, error) {
	state := s.Journal.State()
	if err := s.Guard(); err != nil {
		return "", err
	}
	head, err := objects.ParseID(state.Promoted.Commit)
	if err != nil {
		return "", err
	}
	c, err := s.Repository.ReadCommit(ctx, head)
	if err != nil {
		return "", err
	}
	base, err := objects.ParseID(state.Base.Commit)
	if err != nil {
		return "", err
	}
	c.Parents = []objects.ID{base}
	id, err := s.Repository.WriteCommit(c)
	if err == nil {
		err = s.Probe.After("squash written")
	}
	if err == nil {
		err = s.Journal.Note(journal.Record{Squashed: &journal.Squashed{Commit: id.String(), Old: state.Promoted.Commit, Reason: why, Policy: o.Policy.Hash}})
	}
	if err == nil {
		err = s.Probe.After("squash journaled")
	}
	if err == nil {
		err = s.Replace(ctx)
	}
	s.Log.InfoContext(ctx, "Delivering the history as one commit", "commit", id.String(), "instead of", state.Promoted.Commit, "reason", why)
	return id.String(), err
}

// Replace moves the delivery to the single commit that replaces it in the journal, unless it is there already. The replaced commits keep a
// ref, so that their record stays complete.
func (s *Service) Replace(ctx context.Context) error {
	q := s.Journal.State().Squashed
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
	now, err := s.Repository.Ref(ctx, protocol.RefDelivery)
	if err != nil || now != old {
		return err
	}
	err = s.Repository.UpdateRefs(ctx, []git.RefUpdate{
		{Name: protocol.RefReplaced + "/" + q.Old, New: old}, {Name: protocol.RefDelivery, Old: old, New: id},
	})
	if err != nil {
		return fmt.Errorf("replace the delivery: %w", err)
	}
	return s.Probe.After("squash moved")
}
