// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package retain

import (
	"context"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/retention"
)

// tidyPause is how often it is looked whether a tidying that was called off has ended.
const tidyPause = 5 * time.Millisecond

// Shed drops the content of the oldest checkpoints once never promoted content takes more than the policy's budget. Call it between two
// acts, when nothing else writes to the repository. The watchdog continues after a failure: the next checkpoint tries again, and a full
// volume causes an error of its own.
func (s *Service) Shed(ctx context.Context, o protocol.Orders) error {
	budget := o.Policy.UnpromotedBytes
	added, err := s.Repository.Packs().Added()
	if err != nil || budget <= 0 || added <= max(budget, s.shedAbove) || s.Journal.State().Pending != nil {
		return nil
	}
	for !s.tidying.CompareAndSwap(false, true) {
		if ctx.Err() != nil {
			return nil
		}
		if stop := s.stopTidy.Load(); stop != nil { // it is done again, and dropping leaves less to tidy
			(*stop)()
		}
		steps.Pause(ctx, tidyPause)
	}
	defer s.tidying.Store(false)
	if err = s.dropContent(ctx, o, added); err == nil {
		added, err = s.Repository.Packs().Added()
	}
	s.shedAbove = added + budget/4 // what it looked at it need not look at again soon
	if err != nil && !steps.Fatal(err) && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "Cannot drop content that was never promoted", "error", err.Error())
	}
	if steps.Fatal(err) {
		return err
	}
	return nil
}

func (s *Service) dropContent(ctx context.Context, o protocol.Orders, added int64) error {
	i, err := s.takeInventory(ctx, o)
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
		if err := s.Journal.Note(journal.Record{Dropped: &d}); err != nil {
			return err
		}
	}
	if err := s.Probe.After("drop journaled"); err != nil {
		return err
	}
	if engine := s.Workspace.Engine(); engine != nil {
		engine.Forget()
	}
	s.Log.InfoContext(ctx, "Dropping content that was never promoted", "checkpoints", len(gone), "budget", budget, "bytes", added, "unreached", max(strays, 0))
	if err := s.Repository.Packs().Retain(ctx, i.reach); err != nil {
		return err
	}
	return s.Probe.After("content dropped")
}
