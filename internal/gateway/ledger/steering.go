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

const (
	// clocks of a pod and of the gateway differ by less.
	clocks = time.Minute
	// callWithin is how long after a step its call is looked for. A call with a longer hold is found by its digest.
	callWithin = time.Hour
)

// Steering is the part of a ledger with the steps of steering.
type Steering struct{ ledger *Ledger }

// Steering of the ledger.
func (l *Ledger) Steering() Steering { return Steering{l} }

// Record one step. When Record returns, it survives a crash of the machine. Record leaves an existing step as it is; fresh says that there
// was none. The result missing is why it stored less than all of it: texts that surgery removed and inserted have the same room as diffs. The watchdog
// has removed secrets.
func (k Steering) Record(ctx context.Context, o Owner, s protocol.SteeringStep) (fresh bool, missing string, err error) {
	const what = "record a step of steering"
	if o.FeatureUID == "" || s.Sequence < 1 {
		return false, "", fmt.Errorf("%s: give the UID of a Feature and the number of a step", what)
	}
	checkpoints := k.ledger.Checkpoints()
	release, err := checkpoints.turn(ctx, what)
	if err != nil {
		return false, "", err
	}
	defer release()
	if now := k.ledger.now(); s.Time.IsZero() || s.Time.After(now) {
		s.Time = now // nothing is kept for longer because a clock is wrong
	}
	removed := k.ledger.bodies.compress([]byte(word(s.Before, protocol.MaxSteeringBefore)))
	summary := k.ledger.bodies.compress([]byte(word(s.After, protocol.MaxSteeringAfter)))
	room, err := k.ledger.full.room(ctx)
	if err != nil {
		return false, "", k.ledger.explain(ctx, what, err)
	}
	err = k.ledger.write(ctx, what, durable, func(tx *transaction) error {
		fresh, missing, err = insertStep(ctx, tx, o, s, room, removed, summary)
		return err
	})
	return fresh, missing, err
}

func insertStep(ctx context.Context, tx *transaction, o Owner, s protocol.SteeringStep, room core.Room, removed, summary []byte) (fresh bool, missing string, err error) {
	uid := word(o.FeatureUID, maxWord)
	if room.Feature, err = keepFeature(ctx, tx, o); err != nil {
		return false, "", err
	}
	if err := tx.QueryRowContext(ctx, selectProjectBytes, word(o.Namespace, maxWord)).Scan(&room.Project); err != nil {
		return false, "", err
	}
	bytes := int64(len(removed) + len(summary))
	if _, fits, why := room.Takes(0, bytes); bytes > 0 && !fits {
		removed, summary, bytes = []byte{}, []byte{}, 0
		missing, s.Missing = why, why
	}
	over := 0
	if s.Over {
		over = 1
	}
	result, err := tx.ExecContext(ctx, insertSteering, uid, s.Sequence, s.Time.UnixNano(), s.Attempt, word(s.Task, maxWord), s.Thread, s.Turn, word(s.Request, maxWord),
		word(s.Anomaly, maxKind), word(s.Detector, maxKind), word(s.Evidence, protocol.MaxSteeringEvidence), word(s.Rung, maxKind), over,
		word(s.Message, protocol.MaxSteeringMessage), word(s.Channel, maxKind), word(s.Missing, maxMessage), bytes, removed, summary)
	if err != nil {
		return false, "", err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return false, "", err
	}
	_, err = tx.ExecContext(ctx, addFeatureBytes, uid, bytes)
	return true, missing, err
}

// List returns at most limit steps of a Feature after a Sequence, without the text that surgery removed and inserted; 0 is the beginning.
// The next page begins after the Sequence of the last one. The ledger records steps in their sequence.
func (k Steering) List(ctx context.Context, featureUID string, after int64, limit int) ([]protocol.SteeringStep, error) {
	var list []protocol.SteeringStep
	err := k.ledger.read(ctx, "list the steering of an agent", func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, selectSteering, word(featureUID, maxWord), max(after, 0), int64(clocks), int64(callWithin), min(max(limit, 0), protocol.MaxSteps))
		if err != nil {
			return err
		}
		defer rows.Close()
		for list = nil; rows.Next(); {
			s, err := scanStep(rows.Scan)
			if err != nil {
				return err
			}
			list = append(list, s)
		}
		return rows.Err()
	})
	return list, err
}

// Step returns one with what surgery took out and put in, or wraps ErrNotFound.
func (k Steering) Step(ctx context.Context, featureUID string, sequence int64) (protocol.SteeringStep, error) {
	var s protocol.SteeringStep
	err := k.ledger.read(ctx, "read a step of steering", func(db *sql.DB) (err error) {
		var removed, summary []byte
		row := db.QueryRowContext(ctx, selectStep, word(featureUID, maxWord), sequence, int64(clocks), int64(callWithin))
		s, err = scanStep(row.Scan, &removed, &summary)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("step %d of the Feature: %w", sequence, ErrNotFound)
		}
		if err != nil {
			return err
		}
		before, err := decompress(removed, protocol.MaxSteeringBefore)
		if err != nil {
			return err
		}
		after, err := decompress(summary, protocol.MaxSteeringAfter)
		s.Before, s.After = string(before), string(after)
		return err
	})
	if err != nil {
		return protocol.SteeringStep{}, err
	}
	return s, nil
}

// scanStep reads the columns of a step, and more where there are more.
func scanStep(row func(...any) error, more ...any) (protocol.SteeringStep, error) {
	var s protocol.SteeringStep
	var at, over int64
	err := row(append([]any{
		&s.Sequence, &at, &s.Attempt, &s.Task, &s.Thread, &s.Turn, &s.Request, &s.Anomaly, &s.Detector, &s.Evidence, &s.Rung, &over, &s.Message, &s.Channel, &s.Missing, &s.Call,
	}, more...)...)
	s.Time, s.Over = time.Unix(0, at).UTC(), over != 0
	return s, err
}
