// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// ErrHistoryFull says that a Feature has protocol.MaxHistoryEntries in the ledger: another one is never taken.
var ErrHistoryFull = fmt.Errorf("the history of the Feature has %d entries, and there is no room for more", protocol.MaxHistoryEntries)

// History is the part of a ledger with what happened in Features.
type History struct{ ledger *Ledger }

// History of the ledger.
func (l *Ledger) History() History { return History{l} }

// Record one entry. When Record returns, it survives a crash of the machine. Record leaves an existing entry as it is; fresh says that there
// was none. The result missing is why it stored less than all of it: texts have the same room as diffs. The error wraps ErrHistoryFull if the
// Feature has too many. The watchdog has removed secrets.
func (k History) Record(ctx context.Context, o Owner, e protocol.HistoryEntry) (fresh bool, missing string, err error) {
	const what = "record an entry of a history"
	if o.FeatureUID == "" || e.Sequence < 1 {
		return false, "", fmt.Errorf("%s: give the UID of a Feature and the number of an entry", what)
	}
	release, err := k.ledger.Checkpoints().turn(ctx, what)
	if err != nil {
		return false, "", err
	}
	defer release()
	if now := k.ledger.now(); e.Time.IsZero() || e.Time.After(now) {
		e.Time = now // nothing is kept for longer because a clock is wrong
	}
	text := k.ledger.bodies.compress([]byte(word(e.Text, protocol.MaxHistoryText)))
	room, err := k.ledger.full.room(ctx)
	if err != nil {
		return false, "", k.ledger.explain(ctx, what, err)
	}
	full := false
	err = k.ledger.write(ctx, what, durable, func(tx *transaction) error {
		fresh, missing, full, err = insertEntry(ctx, tx, o, e, room, text)
		return err
	})
	if err == nil && full {
		err = fmt.Errorf("%s: %w", what, ErrHistoryFull)
	}
	return fresh, missing, err
}

func insertEntry(ctx context.Context, tx *transaction, o Owner, e protocol.HistoryEntry, room core.Room, text []byte) (fresh bool, missing string, full bool, err error) {
	uid := word(o.FeatureUID, maxWord)
	if room.Feature, err = keepFeature(ctx, tx, o); err != nil {
		return false, "", false, err
	}
	var others int64
	if err := tx.QueryRowContext(ctx, countHistory, uid, e.Sequence).Scan(&others); err != nil || others >= protocol.MaxHistoryEntries {
		return false, "", err == nil, err
	}
	if err := tx.QueryRowContext(ctx, selectProjectBytes, word(o.Namespace, maxWord)).Scan(&room.Project); err != nil {
		return false, "", false, err
	}
	bytes := int64(len(text))
	if _, fits, why := room.Takes(0, bytes); bytes > 0 && !fits {
		text, bytes = []byte{}, 0
		missing, e.Missing = why, why
	}
	result, err := tx.ExecContext(ctx, insertHistory, uid, e.Sequence, e.Time.UnixNano(), e.Attempt, word(e.Kind, maxKind), word(e.Event, maxKind), word(e.Cause, maxKind),
		word(e.Task, maxWord), word(e.Name, maxWord), word(e.Tree, maxKind), e.Duration, e.ExitCode, word(e.Message, protocol.MaxHistoryMessage), word(e.Missing, maxMessage), bytes, text)
	if err != nil {
		return false, "", false, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return false, "", false, err
	}
	_, err = tx.ExecContext(ctx, addFeatureBytes, uid, bytes)
	return true, missing, false, err
}

// List returns at most limit entries of a Feature after a Sequence, without their texts; 0 is the beginning. With a task, it returns the entries
// of that task. The next page begins after the Sequence of the last one. The ledger records entries in their sequence.
func (k History) List(ctx context.Context, featureUID, task string, after int64, limit int) ([]protocol.HistoryEntry, error) {
	var list []protocol.HistoryEntry
	err := k.ledger.read(ctx, "list the history of a Feature", func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, selectHistory, word(featureUID, maxWord), max(after, 0), word(task, maxWord), min(max(limit, 0), protocol.MaxHistory))
		if err != nil {
			return err
		}
		defer rows.Close()
		for list = nil; rows.Next(); {
			e, err := scanEntry(rows.Scan)
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return rows.Err()
	})
	return list, err
}

// Entry returns one with its text, or wraps ErrNotFound.
func (k History) Entry(ctx context.Context, featureUID string, sequence int64) (protocol.HistoryEntry, error) {
	return k.one(ctx, fmt.Sprintf("entry %d of the history", sequence), selectEntry, word(featureUID, maxWord), sequence)
}

// Newest returns the newest entry of a kind that has a name, with its text, or wraps ErrNotFound.
func (k History) Newest(ctx context.Context, featureUID, kind, name string) (protocol.HistoryEntry, error) {
	return k.one(ctx, "the newest entry of a kind", selectNewest, word(featureUID, maxWord), word(kind, maxKind), word(name, maxWord))
}

// one entry with its text. What names it in errors.
func (k History) one(ctx context.Context, what, query string, parameters ...any) (protocol.HistoryEntry, error) {
	var e protocol.HistoryEntry
	err := k.ledger.read(ctx, "read an entry of a history", func(db *sql.DB) (err error) {
		var packed []byte
		e, err = scanEntry(db.QueryRowContext(ctx, query, parameters...).Scan, &packed)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%s: %w", what, ErrNotFound)
		}
		if err != nil {
			return err
		}
		text, err := decompress(packed, protocol.MaxHistoryText)
		e.Text = string(text)
		return err
	})
	if err != nil {
		return protocol.HistoryEntry{}, err
	}
	return e, nil
}

// scanEntry reads the columns of an entry, and more where there are more.
func scanEntry(row func(...any) error, more ...any) (protocol.HistoryEntry, error) {
	var e protocol.HistoryEntry
	var at int64
	err := row(append([]any{&e.Sequence, &at, &e.Attempt, &e.Kind, &e.Event, &e.Cause, &e.Task, &e.Name, &e.Tree, &e.Duration, &e.ExitCode, &e.Message, &e.Missing}, more...)...)
	e.Time = time.Unix(0, at).UTC()
	return e, err
}
