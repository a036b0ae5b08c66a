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
)

// MaxTurns is how many turns are listed at once.
const MaxTurns = 500

// Turns lists at most limit calls of a Feature after a Sequence, newest last, without their answers and tool results; 0 is the beginning.
// The next page begins after the Sequence of the last one. Calls appear sorted by Sequence, so that a reader misses none that ends
// meanwhile. A row of the refused calls of a minute appears with its first call; its count grows.
func (l *Ledger) Turns(ctx context.Context, featureUID string, after int64, limit int) ([]core.Interaction, error) {
	var turns []core.Interaction
	l.refused.flush(ctx)
	err := l.read(ctx, "list turns", func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, selectTurns, word(featureUID, maxWord), after, min(max(limit, 0), MaxTurns))
		if err != nil {
			return err
		}
		defer rows.Close()
		for turns = nil; rows.Next(); {
			turn, err := scan(rows.Scan)
			if err != nil {
				return err
			}
			turns = append(turns, turn)
		}
		return rows.Err()
	})
	return turns, err
}

// Turn returns the call of a Sequence with its answers and its results of tools, or wraps ErrNotFound.
func (l *Ledger) Turn(ctx context.Context, featureUID string, sequence int64) (core.Interaction, error) {
	var i core.Interaction
	l.refused.flush(ctx)
	err := l.read(ctx, "read a turn", func(db *sql.DB) (err error) {
		var raw, formatted, results []byte
		i, err = scan(db.QueryRowContext(ctx, selectTurn, word(featureUID, maxWord), sequence).Scan, &raw, &formatted, &results)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("turn %d of the Feature: %w", sequence, ErrNotFound)
		}
		if err != nil {
			return err
		}
		if i.Raw, err = decompress(raw, core.MaxAnswer); err != nil {
			return err
		}
		if i.Formatted, err = decompress(formatted, core.MaxAnswer); err != nil {
			return err
		}
		stored, err := resultsOf(results)
		i.Results, i.MoreResults = stored.Results, stored.More
		return err
	})
	if err != nil {
		return core.Interaction{}, err
	}
	return i, nil
}

// scan reads the columns of a call, and more where there are more.
func scan(row func(...any) error, more ...any) (core.Interaction, error) {
	var (
		i          core.Interaction
		at         int64
		estimated  int64
		violations string
	)
	err := row(append([]any{
		&i.ID, &at, &i.FeatureUID, &i.Namespace, &i.Feature, &i.Attempt, &i.Task, &i.Turn, &i.Sequence, &i.Dialect, &i.Backend, &i.ModelAsked, &i.Model, &i.Role,
		&i.RequestDigest, &i.RequestBytes, &i.TemplateHash, &i.AnswerBytes, &violations, &i.Retries, &i.Tokens.Input, &i.Tokens.Output, &i.Tokens.Cached, &i.Cost,
		&i.Status, &i.Reason, &i.FirstByte, &i.Duration, &i.Tokens.Writes, &i.Tokens.LongWrites, &i.Tokens.Searches, &estimated, &i.OutputLimit, &i.Count, &i.Detail,
		&i.Tokens.Fetches, &i.Tokens.Executions, &i.Tokens.FileSearches, &i.Tokens.Images, &i.Tokens.Connectors,
	}, more...)...)
	if err != nil {
		return core.Interaction{}, err
	}
	i.At, i.Estimated = time.Unix(0, at).UTC(), estimated != 0
	if err := json.Unmarshal([]byte(violations), &i.Violations); err != nil {
		return core.Interaction{}, fmt.Errorf("violations of the call %s: %w", i.ID, err)
	}
	return i, nil
}
