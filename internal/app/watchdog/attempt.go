// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/inspect"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/reporter"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/intakeclient"
	"github.com/tidewaiter/tidewaiter/internal/pod/spool"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// attempt is what prepare, run and seal begin with: the trusted volume, and the line to intake.
type attempt struct {
	options Options
	volume  *trusted.Volume
	spool   *spool.Spool
	reports *reporter.Reporter
	health  *health.Health
	orders  *inbox
	journal *trusted.Journal // nil until takeOver or reopen

	hangUp  context.CancelFunc
	talking sync.WaitGroup
}

// begin claims the volume and starts to talk to intake.
func begin(ctx context.Context, o Options) (*attempt, error) {
	dir := o.Paths.trusted()
	v, err := trusted.Claim(ctx, dir, o.Attempt, o.Log)
	if err != nil {
		return nil, err
	}
	s, err := spool.Open(dir.Spool(), o.Attempt)
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	a := &attempt{options: o, volume: v, spool: s, health: &health.Health{}, orders: newInbox()}
	reports{s, a.health}.tell("they were refused earlier")
	a.reports = reporter.New(reporter.Options{Spool: s, Health: a.health, Now: o.Now, Log: o.Log, Probe: o.Probe})
	asked := inspect.NewInquiries(dir, o.Log)
	client := intakeclient.NewClient(intakeclient.Options{URL: o.Intake, ServerName: o.IntakeName, CAPath: o.Paths.CA, TokenPath: o.Paths.Token, Inquire: asked.Take})
	// What ends the work must not end the reports about it: the line has a life of its own.
	talk, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	a.hangUp = hangUp
	a.talking.Go(func() { client.Deliver(talk, reports{s, a.health}, o.Log) })
	a.talking.Go(func() { client.Follow(talk, o.Log, a.received) })
	a.talking.Go(func() { asked.Serve(talk, client) })
	return a, nil
}

// reports wait for intake. The spool sets aside refused ones, and users learn of it.
type reports struct {
	*spool.Spool

	health *health.Health
}

// SetAside implements report.Queue.
func (r reports) SetAside(a protocol.ReportAck, reason string) error {
	if err := r.Spool.SetAside(a, reason); err != nil {
		return err
	}
	r.tell(reason)
	return nil
}

// tell people of what was set aside.
func (r reports) tell(reason string) {
	if n := r.Spool.Refused(); n > 0 {
		r.health.Tell(health.Reports, fmt.Sprintf("only the trusted volume has %d reports, because the manager does not take them: %s", n, reason))
	}
}

// received takes orders for this attempt, and no other.
func (a *attempt) received(o protocol.Orders) {
	if o.Attempt != a.options.Attempt {
		a.options.Log.Warn("Ignoring orders for another attempt", "orders", o.Attempt)
		return
	}
	a.orders.put(o)
}

// end gives everything back. What is spooled stays for the next attempt.
func (a *attempt) end() {
	a.hangUp()
	a.talking.Wait()
	var errs []error
	if a.journal != nil {
		errs = append(errs, a.journal.Close())
	}
	if err := errors.Join(append(errs, a.volume.Close())...); err != nil {
		a.options.Log.Warn("Closing failed", "error", err.Error())
	}
}

// openJournal reads the journal, once.
func (a *attempt) openJournal() error {
	if a.journal != nil {
		return nil
	}
	j, err := trusted.OpenJournal(a.options.Paths.trusted(), a.options.FoldAbove, a.options.Now)
	if err != nil {
		return err
	}
	a.journal = j
	a.reports.Opened(j)
	if o := j.State().Orders; o != nil { // a crash may have come between a plan, or another task, and the orders with it
		return a.noteOrders(a.complete(*o))
	}
	return nil
}

// claimJournal opens the journal and notes that this attempt has taken over, once.
func (a *attempt) claimJournal(run string) error {
	if err := a.openJournal(); err != nil {
		return err
	}
	if a.journal.State().Epoch == a.options.Attempt {
		return nil
	}
	return a.journal.Note(journal.Record{Attempt: &journal.Attempt{Epoch: a.options.Attempt, Run: run}})
}

// takeOver notes the attempt and its orders in the journal.
func (a *attempt) takeOver(o protocol.Orders) error {
	if len(o.Tasks) == 0 {
		return errors.New("the orders hold no task: there is nothing to supervise")
	}
	if err := a.claimJournal(o.Run); err != nil {
		return err
	}
	return a.noteOrders(a.complete(o))
}

// complete are orders with the tasks of a model's newest plan, and with the tasks that agents got because gates before the delivery had failed.
func (a *attempt) complete(o protocol.Orders) protocol.Orders {
	j := a.journal.State()
	if p := j.Planned; p != nil && p.Plan != nil && o.Planning != "" {
		if j.Replaced != nil { // journaled orders may have the plan before this one
			o = plans.Without(o, *j.Replaced)
		}
		o = plans.Apply(o, *p.Plan)
	}
	return j.Complete(o)
}

// noteOrders journals orders that say something else than the ones journaled last.
func (a *attempt) noteOrders(o protocol.Orders) error {
	if have := a.journal.State().Orders; have != nil && gist(*have) == gist(o) {
		return nil
	}
	return a.journal.Note(journal.Record{Orders: &o})
}

// gist is what must be remembered of orders. Requests have their own records, and the next number changes with every
// checkpoint: neither is worth a copy of everything else.
func gist(o protocol.Orders) string {
	o.Requests, o.NextCheckpoint = nil, 0
	text, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	return string(text)
}

// say reports a status, with what is wrong now.
func (a *attempt) say(ctx context.Context, s protocol.StatusReport) {
	a.health.Measure(a.options.Paths.Trusted, a.options.Now())
	a.reports.Status(ctx, s)
}

// inbox holds the newest orders.
type inbox struct {
	changed chan struct{}

	mu     sync.Mutex
	orders *protocol.Orders
}

func newInbox() *inbox { return &inbox{changed: make(chan struct{}, 1)} }

func (i *inbox) put(o protocol.Orders) {
	i.mu.Lock()
	i.orders = &o
	i.mu.Unlock()
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// get is the newest orders, nil before the first.
func (i *inbox) get() *protocol.Orders {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.orders
}

// await waits for the first orders.
func (i *inbox) await(ctx context.Context) (protocol.Orders, error) {
	for {
		if o := i.get(); o != nil {
			return *o, nil
		}
		select {
		case <-i.changed:
		case <-ctx.Done():
			return protocol.Orders{}, fmt.Errorf("wait for orders: %w", ctx.Err())
		}
	}
}
