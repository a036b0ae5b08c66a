// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"time"
)

// maxExpired is how many rows are removed in one transaction, so that others do not wait long for it.
const maxExpired = 1000

// Expire removes calls that ended before a time, the oldest first and at most limit, and says how many. What they have used
// stays in the totals. Reservations that have passed go with them, and pins of that age of tasks that have no call left. Ask
// again while as many are removed as were asked for.
func (l *Ledger) Expire(ctx context.Context, before time.Time, limit int) (removed int, err error) {
	limit = min(max(limit, 0), maxExpired)
	err = l.write(ctx, "remove old calls", quick, func(tx *transaction) error {
		result, err := tx.ExecContext(ctx, expireInteractions, before.UnixNano(), limit)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, expireReservations, l.now().UnixNano(), limit); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, expirePins, before.UnixNano(), limit); err != nil {
			return err
		}
		n, err := result.RowsAffected()
		removed = int(n)
		return err
	})
	return removed, err
}
