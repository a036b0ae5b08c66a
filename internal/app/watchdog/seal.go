// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
)

// Seal does what needs no agent: it reports what earlier attempts could not, does what was requested meanwhile, and
// delivers what they have promoted.
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
	r := newRun(a)
	defer r.close()
	r.latest = orders
	for tries := 0; ; tries++ {
		err := r.openSealed(ctx, orders)
		if err == nil {
			break
		}
		if fatal(err) || ctx.Err() != nil {
			return err
		}
		fault := faultOf(err, contract.ReasonVolumeCorrupt)
		a.say(ctx, contract.StatusReport{State: contract.StatePreparing, Fault: &fault})
		r.rest(ctx, min(lastTry, firstTry<<min(tries, 10)))
		orders = *a.orders.get()
		r.latest = orders
		if orders.Stop || orders.Suspend {
			return r.giveUp(ctx, orders)
		}
	}
	r.state = restored(r.journal(), true, o.Now())
	return r.loop(ctx)
}

// openSealed reads what earlier attempts have left.
func (r *run) openSealed(ctx context.Context, orders contract.Orders) error {
	if err := r.takeOver(orders); err != nil {
		return err
	}
	if r.journal().Base == nil {
		return nil // no attempt came so far that there is anything to deliver
	}
	if r.repo == nil {
		repo, err := git.Open(ctx, r.Paths.repository(), git.Options{})
		if err != nil {
			return err
		}
		r.repo = repo
	}
	if i := r.journal().Pending; i != nil && i.Restore != "" {
		if err := r.needWorkspace(ctx, orders); err != nil {
			return err
		}
	}
	return r.verify(ctx, orders)
}
