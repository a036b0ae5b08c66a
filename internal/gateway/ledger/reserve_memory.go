// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// memoryReservations are the reservations of a database that one process has: the calls that they are for end with it. They cost no write,
// so that no call waits for the record of another one.
type memoryReservations struct {
	now  func() time.Time
	read func(ctx context.Context, b core.Budget) (core.Amount, error)
	// writable fails where a call could not be recorded.
	writable func(ctx context.Context) error

	mu    sync.Mutex
	calls map[string]core.Reservation
	// used is what was read, and then what each transaction says that has recorded calls.
	used  map[account]core.Amount
	ended bool
}

// mostUsed bounds the totals that are remembered: many more than Features at work. Then all are read again.
const mostUsed = 4096

func newMemoryReservations(now func() time.Time, totals *sql.Stmt, writable func(context.Context) error) *memoryReservations {
	read := func(ctx context.Context, b core.Budget) (core.Amount, error) {
		var u core.Usage
		err := totals.QueryRowContext(ctx, string(b.Scope), b.Key, b.Scope.Period(now())).Scan(&u.Input, &u.Cached, &u.Output, &u.Cost, &u.Calls)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return u.Amount, err
	}
	return &memoryReservations{now: now, read: read, writable: writable, calls: map[string]core.Reservation{}, used: map[account]core.Amount{}}
}

// reserve implements reservations. One call at a time is decided on.
func (m *memoryReservations) reserve(ctx context.Context, c claim) error {
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.ended {
		return errClosed
	}
	over, err := c.judge(func(b core.Budget) (used, reserved core.Amount, err error) { return m.takenBut(ctx, b, c.ID) })
	if err == nil {
		err = over
	}
	if err == nil {
		m.calls[c.ID] = c.Reservation
	}
	return err
}

// taken implements reservations.
func (m *memoryReservations) taken(ctx context.Context, b core.Budget) (used, reserved core.Amount, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takenBut(ctx, b, "")
}

// takenBut leaves out what is reserved for one call. What is reserved is looked at first: a call that ends meanwhile is counted
// twice for a moment, and never not at all.
func (m *memoryReservations) takenBut(ctx context.Context, b core.Budget, but string) (used, reserved core.Amount, err error) {
	now := m.now()
	for id, r := range m.calls {
		if !r.Until.After(now) {
			delete(m.calls, id)
			continue
		}
		if key, _ := keyOf(r, b.Scope); key == b.Key && id != but {
			reserved = reserved.Plus(r.Wanted)
		}
	}
	of := account{b.Scope, b.Key, b.Scope.Period(now)}
	used, known := m.used[of]
	if known {
		return used, reserved, nil
	}
	if used, err = m.read(ctx, b); err != nil {
		return used, reserved, err
	}
	if len(m.used) >= mostUsed {
		clear(m.used)
	}
	m.used[of] = used
	return used, reserved, nil
}

// settle implements reservations: in memory nothing is given back before the call is recorded.
func (m *memoryReservations) settle(context.Context, *transaction, string) error { return nil }

// settled implements reservations. Transactions come one after the other, so that the last total is the newest. A total that nobody has asked
// for is not remembered.
func (m *memoryReservations) settled(batch []*settlement, used map[account]core.Amount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range batch {
		delete(m.calls, s.reservation)
	}
	for of, amount := range used {
		if _, known := m.used[of]; known {
			m.used[of] = amount
		}
	}
}

// end implements reservations.
func (m *memoryReservations) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
}
