// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package retain

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/retention"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// inventory is what the trusted repository holds in addition to the history of the base.
type inventory struct {
	// reach is everything that is needed, and everything that checkpoints hold.
	reach *git.Reach
	// contents of the checkpoints that were never promoted, from the oldest to the newest, after what is kept in any case.
	contents []retention.Content
	// holds says what only each of them holds.
	holds map[int64]hold
	// bytes on disk of everything that is reached, without the base's tree.
	bytes int64
}

// neededTrees are the last state of the workspace, what attempts start from, and the checkpoints that a Checkpoint object
// or a request names.
func (s *Service) neededTrees(state journal.State, l ledger, o protocol.Orders) []string {
	needed := []string{state.Workspace.Tree, state.Start}
	if engine := s.Workspace.Engine(); engine != nil {
		if _, now, err := engine.Trees(); err == nil {
			needed = append(needed, now.ID.String())
		}
	}
	named := l.named(o)
	for _, c := range slices.Backward(l.checkpoints) {
		if !state.Dropped[c.sequence] && (named[c.sequence] || c.sequence == state.Chain.Sequence) {
			needed = append(needed, c.tree)
		}
	}
	return needed
}

// hold is what only this checkpoint holds, compared with kept and newer ones.
type hold struct {
	tree string
	ids  []objects.ID
}

// takeInventory finds out what is needed, what else is there, and what that takes. Everything promoted is needed; so
// are the last state of the workspace and what attempts start from, and every checkpoint that a Checkpoint object or a
// request names.
func (s *Service) takeInventory(ctx context.Context, o protocol.Orders) (*inventory, error) {
	records, err := s.Journal.Records()
	if err != nil {
		return nil, err
	}
	state := s.Journal.State()
	l := ledgerOf(records)
	i := &inventory{reach: s.Repository.NewReach(), holds: map[int64]hold{}}
	if _, err := i.add(ctx, state.Base.Tree); err != nil {
		return nil, err
	}
	for _, tree := range slices.Concat(l.promoted, l.learned, []string{state.Promoted.Tree}) {
		if _, err := i.measure(ctx, s.Repository, tree); err != nil {
			return nil, err
		}
	}
	needed := s.neededTrees(state, l, o)
	stays := map[string]bool{state.Base.Tree: true, state.Promoted.Tree: true}
	for _, tree := range slices.Concat(l.promoted, l.learned, needed) {
		stays[tree] = true
	}
	kept := retention.Content{Kept: true}
	for _, tree := range needed {
		h, err := i.measure(ctx, s.Repository, tree)
		if err != nil {
			return nil, err
		}
		kept.Bytes += h.bytes
	}
	for _, c := range slices.Backward(l.checkpoints) {
		if state.Dropped[c.sequence] || stays[c.tree] {
			continue
		}
		h, err := i.measure(ctx, s.Repository, c.tree)
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
	bytes, err := repo.Packs().OnDisk(ctx, ids)
	i.bytes += bytes
	return measured{ids: ids, bytes: bytes}, err
}

// idOf is an id that the journal holds; the zero ID, which no object has, for one that is none.
func idOf(text string) objects.ID {
	id, _ := objects.ParseID(text)
	return id
}
