// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// eventsEach is more than a checkpoint has events, with the one that stands for files that are not listed: the number of
	// an event is that of its checkpoint times this, and its place there.
	eventsEach = 1_000_000
	// pageOfChanges is how many checkpoints are read at a time for a list of events.
	pageOfChanges = 16
	// maxPath bounds a path in bytes: Linux has 4096 for one, and quoting may write four for each.
	maxPath = 16 << 10
)

// Owner is whose changes they are, and how long its policy keeps them.
type Owner struct {
	FeatureUID, Namespace, Feature string
	Keep                           time.Duration
}

// Checkpoints are the part of a ledger that has what checkpoints have changed.
type Checkpoints struct{ ledger *Ledger }

// Checkpoints of the ledger.
func (l *Ledger) Checkpoints() Checkpoints { return Checkpoints{l} }

// Record what a checkpoint has changed. When Record returns, they survive a crash of the machine. It leaves existing changes as they are;
// fresh says that there were none. missing is why it stored less than all of them. The watchdog has removed secrets, so that its
// pod pays for that.
func (k Checkpoints) Record(ctx context.Context, o Owner, c protocol.Changes) (fresh bool, missing string, err error) {
	const what = "record the changes of a checkpoint"
	if o.FeatureUID == "" || c.Checkpoint < 1 {
		return false, "", fmt.Errorf("%s: give the UID of a Feature and the number of a checkpoint", what)
	}
	release, err := k.turn(ctx, what)
	if err != nil {
		return false, "", err
	}
	defer release()
	if now := k.ledger.now(); c.At.IsZero() || c.At.After(now) {
		c.At = now // nothing is kept for longer because a clock is wrong
	}
	c.Listed = boundedList(c.Listed)
	text, err := json.Marshal(c.Listed)
	if err != nil {
		return false, "", fmt.Errorf("%s: %w", what, err)
	}
	names, patch := k.ledger.bodies.compress(text), k.ledger.bodies.compress([]byte(word(c.Patch, protocol.MaxPatch)))
	room, err := k.ledger.full.room(ctx)
	if err != nil {
		return false, "", k.ledger.explain(ctx, what, err)
	}
	err = k.ledger.write(ctx, what, durable, func(tx *transaction) error {
		fresh, missing, err = insertChanges(ctx, tx, o, c, room, names, patch)
		return err
	})
	return fresh, missing, err
}

// turn to write much. The disk is one for all: model calls wait for one checkpoint, or one step of steering, at the most.
func (k Checkpoints) turn(ctx context.Context, what string) (release func(), err error) {
	select {
	case k.ledger.changing <- struct{}{}:
		return func() { <-k.ledger.changing }, nil
	case <-ctx.Done():
		return nil, k.ledger.explain(ctx, what, ctx.Err())
	}
}

// boundedList is a list that both engines store.
func boundedList(list []protocol.FileChange) []protocol.FileChange {
	bounded, size := make([]protocol.FileChange, 0, min(len(list), protocol.MaxListed)), 0
	for _, f := range plain.CutList(list, protocol.MaxListed) {
		f.Type, f.Path = word(f.Type, maxKind), plain.CutBytes(f.Path, maxPath)
		if size += len(f.Path); size > protocol.MaxNames {
			break
		}
		bounded = append(bounded, f)
	}
	return bounded
}

func insertChanges(ctx context.Context, tx *transaction, o Owner, c protocol.Changes, room core.Room, names, patch []byte) (fresh bool, missing string, err error) {
	uid := word(o.FeatureUID, maxWord)
	if room.Feature, err = keepFeature(ctx, tx, o); err != nil {
		return false, "", err
	}
	if err := tx.QueryRowContext(ctx, selectProjectBytes, word(o.Namespace, maxWord)).Scan(&room.Project); err != nil {
		return false, "", err
	}
	keepNames, keepPatch, missing := room.Takes(int64(len(names)), int64(len(patch)))
	listed := len(c.Listed)
	if !keepNames {
		names, listed = []byte{}, 0
	}
	if !keepPatch {
		patch, c.Missing = []byte{}, missing
	}
	bytes := int64(len(names) + len(patch))
	result, err := tx.ExecContext(ctx, insertCheckpoint, uid, c.Checkpoint, c.At.UnixNano(), c.Previous, word(c.Task, maxWord), word(c.Verdict, maxKind),
		word(c.Action, maxKind), max(c.Files, int64(listed)), listed, word(c.Missing, maxMessage), bytes, names, patch)
	if err != nil {
		return false, "", err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return false, "", err
	}
	_, err = tx.ExecContext(ctx, addFeatureBytes, uid, bytes)
	return true, missing, err
}

// Changes returns what a checkpoint has changed; without a checkpoint, it returns the newest one's changes. The error wraps ErrNotFound if
// there are none.
func (k Checkpoints) Changes(ctx context.Context, featureUID string, checkpoint int64) (protocol.Changes, error) {
	var c protocol.Changes
	err := k.ledger.read(ctx, "read the changes of a checkpoint", func(db *sql.DB) error {
		var at int64
		var names, patch []byte
		c = protocol.Changes{}
		err := db.QueryRowContext(ctx, selectChanges, word(featureUID, maxWord), checkpoint).Scan(
			&c.Checkpoint, &at, &c.Previous, &c.Task, &c.Verdict, &c.Action, &c.Files, &c.Missing, &names, &patch)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("checkpoint %d of the Feature: %w", checkpoint, ErrNotFound)
		}
		if err != nil {
			return err
		}
		c.At = time.Unix(0, at).UTC()
		if c.Listed, err = listOf(names); err != nil {
			return fmt.Errorf("checkpoint %d of the Feature: %w", checkpoint, err)
		}
		text, err := decompress(patch, protocol.MaxPatch)
		c.Patch = string(text)
		return err
	})
	if err != nil {
		return protocol.Changes{}, err
	}
	return c, nil
}

// listOf reads names as they are stored.
func listOf(names []byte) ([]protocol.FileChange, error) {
	text, err := decompress(names, protocol.MaxChanges)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	var list []protocol.FileChange
	err = json.Unmarshal(text, &list)
	return list, err
}

// Events lists at most limit file events of a Feature after a Sequence; 0 is the beginning. The next page begins after the Sequence of the
// last one. The ledger records checkpoints in their sequence.
func (k Checkpoints) Events(ctx context.Context, featureUID string, after int64, limit int) ([]protocol.FileEvent, error) {
	limit = min(max(limit, 0), protocol.MaxEvents)
	var events []protocol.FileEvent
	err := k.ledger.read(ctx, "list file events", func(db *sql.DB) error {
		events = nil
		for next := max(after, 0) / eventsEach; len(events) < limit; next++ {
			last, more, err := eventsFrom(ctx, db, featureUID, next, max(after, 0), limit-len(events))
			if err != nil {
				return err
			}
			if events = append(events, more...); last < 0 {
				return nil
			}
			next = last
		}
		return nil
	})
	return events, err
}

// eventsFrom a checkpoint on, as many as one page of checkpoints has. Last is the last of them; negative where there is none.
func eventsFrom(ctx context.Context, db *sql.DB, featureUID string, first, after int64, limit int) (last int64, events []protocol.FileEvent, err error) {
	rows, err := db.QueryContext(ctx, selectNames, word(featureUID, maxWord), first, pageOfChanges)
	if err != nil {
		return -1, nil, err
	}
	defer rows.Close()
	for last = -1; rows.Next(); {
		var at, files int64
		var names []byte
		if err := rows.Scan(&last, &at, &files, &names); err != nil {
			return -1, nil, err
		}
		list, err := listOf(names)
		if err != nil {
			return -1, nil, fmt.Errorf("checkpoint %d of the Feature: %w", last, err)
		}
		for n := 0; n <= len(list) && len(events) < limit; n++ {
			e := protocol.FileEvent{Sequence: last*eventsEach + int64(n) + 1, CaptureTime: time.Unix(0, at).UTC(), Checkpoint: last}
			switch {
			case n < len(list):
				e.Type, e.Path, e.Size, e.Mode = list[n].Type, list[n].Path, list[n].Size, list[n].Mode
			case files > int64(len(list)):
				e.Type, e.Count = protocol.ChangeOmitted, files-int64(len(list))
			default:
				continue
			}
			if e.Sequence > after {
				events = append(events, e)
			}
		}
	}
	return last, events, rows.Err()
}
