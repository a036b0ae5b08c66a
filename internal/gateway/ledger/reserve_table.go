// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"sync"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// tableReservations are rows of the database that replicas share. Calls that come together share a transaction.
type tableReservations struct {
	ledger   *Ledger
	bookings chan *booking
	closing  chan struct{}
	close    sync.Once
	// booked is closed when nothing is reserved any more.
	booked chan struct{}
}

func (l *Ledger) newTableReservations() *tableReservations {
	t := &tableReservations{ledger: l, bookings: make(chan *booking, maxBatch), closing: make(chan struct{}), booked: make(chan struct{})}
	go t.bookAll()
	return t
}

// booking is a claim that waits for its answer.
type booking struct {
	claim

	ctx  context.Context //nolint:containedctx // a caller may give up before it is its turn
	done chan error
}

// reserve implements reservations.
func (t *tableReservations) reserve(ctx context.Context, c claim) error {
	k := &booking{claim: c, ctx: ctx, done: make(chan error, 1)}
	select {
	case t.bookings <- k:
	case <-t.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-k.done:
		return err
	case <-t.booked: // it came too late, or it was the last
		select {
		case err := <-k.done:
			return err
		default:
			return errClosed
		}
	case <-ctx.Done():
		go t.abandon(k)
		return ctx.Err()
	}
}

// abandon gives back what was reserved for a call that was given up meanwhile.
func (t *tableReservations) abandon(k *booking) {
	select {
	case err := <-k.done:
		if err != nil {
			return
		}
	case <-t.booked: // it ends by its time
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	err := t.ledger.write(ctx, "give a reservation back", quick, func(tx *transaction) error { return t.settle(ctx, tx, k.ID) })
	if err != nil { // it ends by its time
		t.ledger.log.Warn("A reservation of a call that was given up stays until its time", "error", err.Error())
	}
}

// bookAll reserves what comes until the end, all that has come meanwhile in one transaction.
func (t *tableReservations) bookAll() {
	defer close(t.booked)
	for {
		select {
		case first := <-t.bookings:
			batch := []*booking{first}
			for len(batch) < maxBatch && len(t.bookings) > 0 { // nobody else takes any
				batch = append(batch, <-t.bookings)
			}
			t.book(batch)
		case <-t.closing:
			return
		}
	}
}

// book a batch. One of them that exceeds a budget does not fail the others.
func (t *tableReservations) book(batch []*booking) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	refused := map[*booking]error{}
	err := t.ledger.write(ctx, "reserve calls", quick, func(tx *transaction) error {
		clear(refused)
		var budgets []core.Budget
		for _, k := range batch {
			budgets = append(budgets, k.budgets...)
		}
		// All replicas lock in the same order.
		slices.SortStableFunc(budgets, func(a, b core.Budget) int {
			return cmp.Or(slices.Index(scopes, a.Scope)-slices.Index(scopes, b.Scope), cmp.Compare(a.Key, b.Key))
		})
		budgets = slices.CompactFunc(budgets, func(a, b core.Budget) bool { return a.Scope == b.Scope && a.Key == b.Key })
		for _, b := range budgets {
			if err := serialize(ctx, tx, b); err != nil {
				return err
			}
		}
		for _, k := range batch {
			if err := k.ctx.Err(); err != nil {
				refused[k] = err
				continue
			}
			over, err := t.insert(ctx, tx, k.claim)
			if err != nil {
				return err
			}
			refused[k] = over
		}
		return nil
	})
	for _, k := range batch {
		if err != nil {
			k.done <- err
		} else {
			k.done <- refused[k]
		}
	}
}

// insert a row, where no budget has too little left; over says which one has.
func (t *tableReservations) insert(ctx context.Context, tx *transaction, c claim) (over, err error) {
	over, err = c.judge(func(b core.Budget) (used, reserved core.Amount, err error) { return t.takenBut(ctx, tx, b, c.ID) })
	if err != nil || over != nil {
		return over, err
	}
	_, err = tx.ExecContext(ctx, upsertReservation, c.ID, c.FeatureUID, c.Namespace, c.Wanted.Input, c.Wanted.Output, c.Wanted.Cost, c.Until.UnixNano())
	return nil, err
}

// taken implements reservations.
func (t *tableReservations) taken(ctx context.Context, b core.Budget) (used, reserved core.Amount, err error) {
	err = retry(func() error {
		used, reserved, err = t.takenBut(ctx, t.ledger.reader, b, "")
		return err
	})
	return used, reserved, err
}

// takenBut leaves out what is reserved for one call.
func (t *tableReservations) takenBut(ctx context.Context, q querier, b core.Budget, but string) (used, reserved core.Amount, err error) {
	now := t.ledger.now()
	row := q.QueryRowContext(ctx, selectTakenOf[b.Scope], string(b.Scope), b.Key, b.Scope.Period(now), now.UnixNano(), but)
	err = row.Scan(&used.Input, &used.Output, &used.Cost, &reserved.Input, &reserved.Output, &reserved.Cost)
	return used, reserved, err
}

// settle implements reservations.
func (t *tableReservations) settle(ctx context.Context, tx *transaction, id string) error {
	_, err := tx.ExecContext(ctx, deleteReservation, id)
	return err
}

// settled implements reservations: the row went with the transaction.
func (t *tableReservations) settled([]*settlement, map[account]core.Amount) {}

// end implements reservations.
func (t *tableReservations) end() {
	t.close.Do(func() { close(t.closing) })
	<-t.booked
}

// serialize lets one transaction at a time decide about a budget, by a lock of the transaction. Budgets whose hashes are equal wait
// for one another, and that is all.
func serialize(ctx context.Context, tx *transaction, b core.Budget) error {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(string(b.Scope) + "\x00" + b.Key))
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(hash.Sum64())) //nolint:gosec // any number will do
	return err
}

// selectTakenOf are the statements that read what is taken of a scope.
var selectTakenOf = map[core.Scope]string{core.Feature: selectTakenByFeature, core.Project: selectTakenByProject, core.Global: selectTaken}
