// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

const (
	// maxExpired is how many rows are removed in one transaction, so that others do not wait long for it.
	maxExpired = 1000
	// maxOwners is how many Features are listed at once.
	maxOwners = 500
)

// keepFeature notes whose records there are and how long they are kept, locks that until the transaction ends, and says how much
// its changes, what surgery took out of conversations, and the texts of its history take.
func keepFeature(ctx context.Context, tx *transaction, o Owner) (bytes int64, err error) {
	keep := o.Keep
	if keep <= 0 {
		keep = policy.LedgerRetention
	}
	err = tx.QueryRowContext(ctx, upsertFeature, word(o.FeatureUID, maxWord), word(o.Namespace, maxWord), word(o.Feature, maxWord), int64(keep)).Scan(&bytes)
	return bytes, err
}

// Owners lists the Features with records, sorted by UID: at most 500 after the given one.
func (l *Ledger) Owners(ctx context.Context, after string) ([]Owner, error) {
	var owners []Owner
	err := l.read(ctx, "list the Features of the ledger", func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, selectFeatures, word(after, maxWord), maxOwners)
		if err != nil {
			return err
		}
		defer rows.Close()
		for owners = nil; rows.Next(); {
			var o Owner
			if err := rows.Scan(&o.FeatureUID, &o.Namespace, &o.Feature, (*int64)(&o.Keep)); err != nil {
				return err
			}
			owners = append(owners, o)
		}
		return rows.Err()
	})
	return owners, err
}

// Keep changes how long the ledger keeps the records of a Feature, if there are any.
func (l *Ledger) Keep(ctx context.Context, featureUID string, keep time.Duration) error {
	return l.write(ctx, "change how long records are kept", quick, func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, updateKeep, word(featureUID, maxWord), int64(keep))
		return err
	})
}

// Expire removes records of a Feature that are older than the ledger keeps them: calls by their end, changes by their capture, steering by
// its decision, the history by its time, each oldest first and at most limit. It returns their number. The totals keep the usage of the calls. Expire also removes a
// Feature without records. Call it again as long as it removes as many as the limit.
func (l *Ledger) Expire(ctx context.Context, featureUID string, limit int) (removed int, err error) {
	const what = "remove old records"
	limit, uid := min(max(limit, 0), maxExpired), word(featureUID, maxWord)
	due := false
	if err := l.read(ctx, what, func(db *sql.DB) error { return db.QueryRowContext(ctx, selectDue, uid, l.now().UnixNano()).Scan(&due) }); err != nil || !due {
		return 0, err
	}
	err = l.write(ctx, what, quick, func(tx *transaction) error {
		removed = 0
		var before, last, dropped int64
		// Other records of the Feature wait meanwhile. Locks are taken in the order in which calls take them.
		if err := tx.QueryRowContext(ctx, lockStored, uid).Scan(&last, &dropped); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := tx.QueryRowContext(ctx, lockFeature, uid).Scan(&before); errors.Is(err, sql.ErrNoRows) {
			return nil // another replica has removed the last of it
		} else if err != nil {
			return err
		}
		before = l.now().UnixNano() - before
		var bytes int64
		if removed, bytes, err = removeCalls(ctx, tx, expireInteractions, uid, before, limit); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, takeStored, uid, bytes, dropped); err != nil {
			return err
		}
		for _, statement := range []string{expireChanges, expireSteering, expireHistory} {
			result, err := tx.ExecContext(ctx, statement, uid, before, limit)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			removed = max(removed, int(n))
		}
		if _, err := tx.ExecContext(ctx, sumFeatureBytes, uid); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, forgetFeature, uid)
		return err
	})
	return removed, err
}

// removeCalls by a statement that returns what the row of each has taken, and sum that up.
func removeCalls(ctx context.Context, tx *transaction, statement string, args ...any) (rows int, bytes int64, err error) {
	removed, err := tx.QueryContext(ctx, statement, args...)
	if err != nil {
		return 0, 0, err
	}
	defer removed.Close()
	for removed.Next() {
		var each int64
		if err := removed.Scan(&each); err != nil {
			return 0, 0, err
		}
		rows, bytes = rows+1, bytes+each
	}
	return rows, bytes, removed.Err()
}

// Sweep removes expired reservations, and pins of tasks without calls for the usual time of keeping records; at most limit of each.
func (l *Ledger) Sweep(ctx context.Context, limit int) error {
	limit = min(max(limit, 0), maxExpired)
	return l.write(ctx, "remove old reservations and pins", quick, func(tx *transaction) error {
		if _, err := tx.ExecContext(ctx, expireReservations, l.now().UnixNano(), limit); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, expirePins, l.now().Add(-policy.LedgerRetention).UnixNano(), limit)
		return err
	})
}
