// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/host/eventlog"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/report"
	"github.com/tidewaiter/tidewaiter/internal/host/spool"
)

// attempt is what every subcommand works with: the trusted volume, and the line to intake.
type attempt struct {
	Options

	volume *volume
	spool  *spool.Spool
	book   *book           // nil until openBook
	repo   *git.Repository // nil until it is opened
	orders *inbox
	// changes is the log of file events; nil until there is one to write.
	changes *eventlog.Log

	health  health
	said    []byte // status that was spooled last
	hangUp  context.CancelFunc
	talking sync.WaitGroup
}

// begin claims the volume and starts to talk to intake.
func begin(ctx context.Context, o Options) (*attempt, error) {
	v, err := claim(ctx, o.Paths, o.Attempt, o.Log)
	if err != nil {
		return nil, err
	}
	if err := v.sweep(o.Paths.repository()); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	s, err := spool.Open(o.Paths.spool(), o.Attempt)
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	a := &attempt{Options: o, volume: v, spool: s, orders: newInbox()}
	asked := newInquiries(o.Paths, o.Log)
	client := report.NewClient(report.Options{URL: o.Intake, ServerName: o.IntakeName, CAPath: o.Paths.CA, TokenPath: o.Paths.Token, Inquire: asked.take})
	// What ends the work must not end the reports about it: the line has a life of its own.
	talk, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	a.hangUp = hangUp
	a.talking.Go(func() { client.Deliver(talk, s, o.Log) })
	a.talking.Go(func() { client.Follow(talk, o.Log, a.received) })
	a.talking.Go(func() { asked.serve(talk, client) })
	return a, nil
}

// received takes orders for this attempt, and no other.
func (a *attempt) received(o contract.Orders) {
	if o.Attempt != a.Attempt {
		a.Log.Warn("Orders for another attempt are ignored", "orders", o.Attempt)
		return
	}
	a.orders.put(o)
}

// end gives everything back. What is spooled stays for whoever comes next.
func (a *attempt) end() {
	a.hangUp()
	a.talking.Wait()
	var errs []error
	if a.repo != nil {
		errs = append(errs, a.repo.Close())
	}
	if a.book != nil {
		errs = append(errs, a.book.Close())
	}
	if a.changes != nil {
		errs = append(errs, a.changes.Close())
	}
	if err := errors.Join(append(errs, a.volume.Close())...); err != nil {
		a.Log.Warn("Closing failed", "error", err.Error())
	}
}

// state is what the journal adds up to.
func (a *attempt) journal() journal.State { return a.book.State() }

// openBook reads the journal and notes that this attempt has taken over, once.
func (a *attempt) openBook(run string) error {
	if a.book == nil {
		b, err := openBook(a.Paths.journal(), a.FoldAbove, a.Now)
		if err != nil {
			return err
		}
		a.book = b
	}
	if a.journal().Epoch == a.Attempt {
		return nil
	}
	return a.book.Note(journal.Record{Attempt: &journal.Attempt{Epoch: a.Attempt, Run: run}})
}

// takeOver notes the attempt and its orders in the journal.
func (a *attempt) takeOver(o contract.Orders) error {
	if len(o.Tasks) == 0 {
		return errors.New("the orders hold no task: there is nothing to supervise")
	}
	if err := a.openBook(o.Run); err != nil {
		return err
	}
	return a.noteOrders(o)
}

// noteOrders journals orders that say something else than the ones journaled last.
func (a *attempt) noteOrders(o contract.Orders) error {
	if have := a.journal().Orders; have != nil && gist(*have) == gist(o) {
		return nil
	}
	return a.book.Note(journal.Record{Orders: &o})
}

// gist is what must be remembered of orders. Requests have their own records, and the next number changes with every
// checkpoint: neither is worth a copy of everything else.
func gist(o contract.Orders) string {
	o.Requests, o.NextCheckpoint = nil, 0
	text, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	return string(text)
}

// say spools a status, unless it is the one that was said last.
func (a *attempt) say(ctx context.Context, s contract.StatusReport) {
	a.health.measure(a.Paths, a.Now())
	s.Problems = a.health.list()
	text, err := json.Marshal(s)
	if err == nil && string(text) == string(a.said) {
		return
	}
	if _, err := a.spool.Append(contract.Report{Time: a.Now().UTC(), Status: &s}); err != nil {
		a.Log.WarnContext(ctx, "Status is not reported", "error", err.Error())
		return
	}
	a.said = text
	attributes := []any{"state", s.State, "task", s.Task, "agentRunning", s.AgentRunning}
	if len(s.Problems) > 0 {
		attributes = append(attributes, "problems", s.Problems)
	}
	if s.Fault != nil {
		attributes = append(attributes, slog.Group("fault", "reason", s.Fault.Reason, "message", s.Fault.Message))
	}
	a.Log.InfoContext(ctx, "Status", attributes...)
}

// conclude journals and spools the last word of the attempt. It may be repeated after a crash.
func (a *attempt) conclude(ctx context.Context, f contract.FinalReport) error {
	if !a.journal().Finished {
		if err := a.book.Note(journal.Record{Final: &f}); err != nil {
			return err
		}
	}
	if err := a.probe("final journaled"); err != nil {
		return err
	}
	a.Log.InfoContext(ctx, "Attempt ends", "outcome", f.Outcome, "reason", f.Reason, "message", f.Message, "head", f.Head)
	if _, err := a.spool.Append(contract.Report{Time: a.Now().UTC(), Final: &f}); err != nil {
		return err
	}
	return a.probe("final spooled")
}

// probe lets a test end the process here.
func (a *attempt) probe(step string) error {
	if a.Probe == nil {
		return nil
	}
	if err := a.Probe(step); err != nil {
		return &crash{step: step, cause: err}
	}
	return nil
}

// crash is what a probe ends the process with: nothing may happen after it.
type crash struct {
	step  string
	cause error
}

// Error names the step.
func (c *crash) Error() string { return fmt.Sprintf("crash after %q: %v", c.step, c.cause) }

// Unwrap gives the probe's own error.
func (c *crash) Unwrap() error { return c.cause }

// fatal says that an error must end the process: it crashed, or does not own the volume any more.
func fatal(err error) bool {
	var c *crash
	return errors.As(err, &c) || errors.Is(err, errFenced)
}

// inbox holds the newest orders.
type inbox struct {
	changed chan struct{}

	mu     sync.Mutex
	orders *contract.Orders
}

func newInbox() *inbox { return &inbox{changed: make(chan struct{}, 1)} }

func (i *inbox) put(o contract.Orders) {
	i.mu.Lock()
	i.orders = &o
	i.mu.Unlock()
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// get is the newest orders, nil before the first.
func (i *inbox) get() *contract.Orders {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.orders
}

// await waits for the first orders.
func (i *inbox) await(ctx context.Context) (contract.Orders, error) {
	for {
		if o := i.get(); o != nil {
			return *o, nil
		}
		select {
		case <-i.changed:
		case <-ctx.Done():
			return contract.Orders{}, fmt.Errorf("wait for orders: %w", ctx.Err())
		}
	}
}
