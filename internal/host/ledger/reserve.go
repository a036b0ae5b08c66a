// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

const (
	// maxTokens and maxCost of one call are more than any has, and so few that sums of them always fit.
	maxTokens, maxCost = 1 << 40, 1 << 50
	// maxID of a call, in bytes.
	maxID = 128
)

// Reserve lets a call be made if it keeps to all the budgets, across replicas, or gives a *core.OverBudgetError. The call then
// ends with Settle. What a call has reserved before under the same ID is replaced.
func (l *Ledger) Reserve(ctx context.Context, r core.Reservation, budgets []core.Budget) error {
	const what = "reserve a call"
	if r.ID == "" || len(r.ID) > maxID || r.FeatureUID == "" {
		return fmt.Errorf("%s: give it an ID of 1 to %d bytes and the UID of its Feature", what, maxID)
	}
	for _, b := range budgets {
		if err := belongs(r, b); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	r.ID, r.FeatureUID, r.Namespace = word(r.ID, maxID), word(r.FeatureUID, maxWord), word(r.Namespace, maxWord)
	k := &booking{ctx: ctx, reservation: r, wanted: bounded(r.Wanted), budgets: inOrder(budgets), done: make(chan error, 1)}
	select {
	case l.bookings <- k:
	case <-l.closing:
		return fmt.Errorf("%s: %w", what, errClosed)
	case <-ctx.Done():
		return l.explain(ctx, what, ctx.Err())
	}
	select {
	case err := <-k.done:
		return l.explain(ctx, what, err)
	case <-l.booked: // it came too late, or it was the last
		select {
		case err := <-k.done:
			return l.explain(ctx, what, err)
		default:
			return fmt.Errorf("%s: %w", what, errClosed)
		}
	case <-ctx.Done():
		go l.abandon(k)
		return l.explain(ctx, what, ctx.Err())
	}
}

// booking is a call that waits for being reserved, and for the answer.
type booking struct {
	ctx         context.Context //nolint:containedctx // whoever waits may give up before it is its turn
	reservation core.Reservation
	wanted      core.Amount
	budgets     []core.Budget
	done        chan error
}

// abandon gives back what was reserved for a call that was given up meanwhile.
func (l *Ledger) abandon(k *booking) {
	select {
	case err := <-k.done:
		if err != nil {
			return
		}
	case <-l.booked: // reservations of a process that has ended are gone, or end by their time
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	err := l.write(ctx, "give a reservation back", quick, func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, deleteReservation, k.reservation.ID)
		return err
	})
	if err != nil { // it ends by its time
		l.log.Warn("A reservation of a call that was given up stays until its time", "error", err.Error())
	}
}

// bookAll reserves what comes until the ledger is closed, all that has come meanwhile in one transaction.
func (l *Ledger) bookAll() {
	defer close(l.booked)
	for {
		select {
		case first := <-l.bookings:
			batch := []*booking{first}
			for len(batch) < maxBatch && len(l.bookings) > 0 { // nobody else takes any
				batch = append(batch, <-l.bookings)
			}
			l.book(batch)
		case <-l.closing:
			return
		}
	}
}

// book a batch. That one of them goes over a budget is no error of the others.
func (l *Ledger) book(batch []*booking) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	refused := map[*booking]error{}
	err := l.write(ctx, "reserve calls", quick, func(tx *transaction) error {
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
			if err := l.engine.serialize(ctx, tx.Tx, b); err != nil {
				return err
			}
		}
		for _, k := range batch {
			if err := k.ctx.Err(); err != nil {
				refused[k] = err
				continue
			}
			over, err := l.reserve(ctx, tx, k)
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

// reserve one call, where no budget has too little left; over says which one has.
func (l *Ledger) reserve(ctx context.Context, tx *transaction, k *booking) (over, err error) {
	var wait error
	for _, b := range k.budgets {
		used, reserved, err := l.taken(ctx, tx, b, k.reservation.ID)
		if err != nil {
			return nil, err
		}
		over, is := errors.AsType[*core.OverBudgetError](core.Over(b, used, reserved, k.wanted))
		switch {
		case is && !over.Passes(): // what a person has to do comes first
			return over, nil
		case is && wait == nil:
			wait = over
		}
	}
	if wait != nil {
		return wait, nil
	}
	r := k.reservation
	_, err = tx.ExecContext(ctx, upsertReservation, r.ID, r.FeatureUID, r.Namespace, k.wanted.Input, k.wanted.Output, k.wanted.Cost, r.Until.UnixNano())
	return nil, err
}

// bounded is what a call uses or wants, so that sums always fit.
func bounded(a core.Amount) core.Amount {
	return core.Amount{Input: min(max(a.Input, 0), maxTokens), Output: min(max(a.Output, 0), maxTokens), Cost: min(max(a.Cost, 0), maxCost)}
}

// Taken says what is used of a budget in its current period, and what is reserved for calls that have not ended.
func (l *Ledger) Taken(ctx context.Context, b core.Budget) (used, reserved core.Amount, err error) {
	err = l.read(ctx, "read what is used of a budget", func(db *sql.DB) error {
		used, reserved, err = l.taken(ctx, db, b, "")
		return err
	})
	return used, reserved, err
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// taken leaves out what is reserved for one call.
func (l *Ledger) taken(ctx context.Context, q querier, b core.Budget, but string) (used, reserved core.Amount, err error) {
	now := l.now()
	row := q.QueryRowContext(ctx, taken[b.Scope], string(b.Scope), word(b.Key, maxWord), b.Scope.Period(now), now.UnixNano(), but)
	err = row.Scan(&used.Input, &used.Output, &used.Cost, &reserved.Input, &reserved.Output, &reserved.Cost)
	return used, reserved, err
}

// taken are the statements that read what is taken of a scope.
var taken = map[core.Scope]string{core.Feature: selectTakenByFeature, core.Project: selectTakenByProject, core.Global: selectTaken}

// scopes in the order in which their rows and locks are taken: what many share is had for the shortest time.
var scopes = []core.Scope{core.Feature, core.Project, core.Global}

// inOrder sorts budgets by their scopes. Those of a call have one key for each scope.
func inOrder(budgets []core.Budget) []core.Budget {
	return slices.SortedStableFunc(slices.Values(budgets), func(a, b core.Budget) int { return slices.Index(scopes, a.Scope) - slices.Index(scopes, b.Scope) })
}

// belongs says what is wrong with a budget for a call.
func belongs(r core.Reservation, b core.Budget) error {
	keys := map[core.Scope]string{core.Feature: r.FeatureUID, core.Project: r.Namespace, core.Global: ""}
	if key, is := keys[b.Scope]; !is || key != b.Key {
		return fmt.Errorf("the budget %q of %q is not about the Feature %s in %q", b.Scope, b.Key, r.FeatureUID, r.Namespace)
	}
	return nil
}
