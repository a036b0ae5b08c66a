// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
)

// Seal does the work that needs no agent: it sends reports that earlier attempts could not send, carries out requests since then, and
// delivers promoted work.
func Seal(ctx context.Context, o Options) error {
	a, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer a.end()
	orders, err := a.orders.await(ctx) // an approval is in the newest orders, never in the journaled ones
	if err != nil {
		return err
	}
	var s *services
	defer func() {
		if s != nil {
			s.close()
		}
	}()
	var tries supervise.Preparation
	for {
		if s, err = openSealed(ctx, a, s, orders); err == nil {
			break
		}
		if steps.Fatal(err) || ctx.Err() != nil {
			return err
		}
		fault := faults.Of(err, protocol.ReasonPreparationFailed)
		a.say(ctx, protocol.StatusReport{State: protocol.StatePreparing, Fault: &fault})
		tries = tries.Failed(fault) // never its last: work that is done waits, and needs this volume
		a.rest(ctx, tries.Pause())
		if orders = *a.orders.get(); orders.Stop || orders.Suspend {
			return a.giveUp(ctx, orders)
		}
	}
	return newLoop(s, nil, *a.journal.State().Orders).run(ctx)
}

// openSealed reads what earlier attempts have left, and continues with the services that an earlier try has opened. If no attempt has made
// anything to deliver, they have no repository.
func openSealed(ctx context.Context, a *attempt, s *services, orders protocol.Orders) (*services, error) {
	if err := a.takeOver(orders); err != nil {
		return s, err
	}
	state := a.journal.State()
	if s == nil {
		var repo *git.Repository
		if state.Base != nil {
			var err error
			if repo, err = git.Open(ctx, a.options.Paths.trusted().Repository(), git.Options{}); err != nil {
				return nil, err
			}
		}
		s = newServices(a, repo, true)
	}
	if state.Base == nil {
		return s, nil
	}
	if i := state.Pending; i != nil && i.Restore != "" {
		if err := s.workspace.Need(ctx, state); err != nil {
			return s, err
		}
	}
	return s, s.complete(ctx)
}
