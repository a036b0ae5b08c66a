// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retain keeps the trusted repository small: it puts packs together, drops what nothing reaches, and keeps never promoted content
// within a budget.
package retain

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// Options of a Service.
type Options struct {
	Journal    *trusted.Journal
	Repository *git.Repository
	// Workspace that checkpoints are taken of; it need not be open.
	Workspace *checkpoint.Workspace
	// MaxPacks of the repository: beyond it, the service puts packs together. PruneAbove is the number of bytes that checkpoints may add
	// before Prune drops what no ref reaches.
	MaxPacks   int
	PruneAbove int64
	Log        *slog.Logger
	Probe      steps.Probe
}

// Service keeps one repository small.
type Service struct {
	Options
	// shedAbove is the number of added bytes after which the service checks the budget of unpromoted content again.
	shedAbove int64

	working  sync.WaitGroup
	tidying  atomic.Bool
	stopTidy atomic.Pointer[context.CancelFunc] // of the tidying under way or over
}

// New service.
func New(o Options) *Service { return &Service{Options: o} }

// Wait for the tidying in progress; its context ends it.
func (s *Service) Wait() { s.working.Wait() }

// Tidy gives back the memory that a checkpoint took, and puts packs together in the background.
func (s *Service) Tidy(ctx context.Context) {
	s.Repository.Store().Recent().Clear()
	if !s.tidying.CompareAndSwap(false, true) {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	s.stopTidy.Store(&stop)
	s.working.Go(func() {
		defer s.tidying.Store(false)
		defer stop()
		debug.FreeOSMemory() // the next checkpoint is a while away
		done, err := s.Repository.Packs().Tidy(ctx, s.MaxPacks)
		switch {
		case err != nil && ctx.Err() == nil:
			s.Log.WarnContext(ctx, "Cannot tidy the trusted repository", "error", err.Error())
		case done:
			s.Log.InfoContext(ctx, "Put the packs of the trusted repository together")
		}
	})
}

// Prune drops what no ref reaches, once that could be much. The watchdog continues after a failure.
func (s *Service) Prune(ctx context.Context) error {
	added, err := s.Repository.Packs().Added()
	wanted := err == nil && added >= s.PruneAbove && s.Workspace.Engine() == nil
	if wanted {
		wanted, err = s.anchored(ctx)
	}
	if wanted {
		s.Log.InfoContext(ctx, "Pruning the trusted repository", "bytes", added)
		err = s.dropUnreached(ctx)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "Cannot prune the trusted repository", "error", err.Error())
	}
	return context.Cause(ctx)
}

// dropUnreached drops what nothing needs. Git cannot repack a chain of which some content was dropped.
func (s *Service) dropUnreached(ctx context.Context) error {
	if len(s.Journal.State().Dropped) == 0 {
		base, err := objects.ParseID(s.Journal.State().Base.Commit)
		if err != nil {
			return err
		}
		return s.Repository.Packs().Prune(ctx, base)
	}
	i, err := s.takeInventory(ctx, protocol.Orders{})
	if err != nil {
		return err
	}
	return s.Repository.Packs().Retain(ctx, i.reach)
}

// anchored tells whether refs reach the trees that the journal speaks of. A tree that was put together for a restore is
// in no commit before the next checkpoint.
func (s *Service) anchored(ctx context.Context) (bool, error) {
	state := s.Journal.State()
	reached := []string{state.Base.Tree, state.Promoted.Tree}
	if state.Chain.Commit != "" {
		commit, err := objects.ParseID(state.Chain.Commit)
		if err != nil {
			return false, err
		}
		tree, err := s.Repository.TreeOf(ctx, commit)
		if err != nil {
			return false, err
		}
		reached = append(reached, tree.String())
	}
	return slices.Contains(reached, state.Workspace.Tree) && slices.Contains(reached, state.Start), nil
}
