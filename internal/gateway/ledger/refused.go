// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

const (
	// refusedTime is how long refusals are kept in memory, so that many of them are written at once.
	refusedTime = time.Second
	// maxRefused is how many rows of refusals are kept in memory. Each Feature has one or two at a time.
	maxRefused = 4096
)

// refusals are calls that reached no backend and are not written yet: one settlement for each row.
type refusals struct {
	ledger *Ledger
	// due asks for them to be written; whoever asks may wait until that was done.
	due chan chan<- struct{}

	mu   sync.Mutex
	rows map[string]*settlement
	// lost is how many had no room.
	lost int64
}

func (l *Ledger) newRefusals() *refusals {
	return &refusals{ledger: l, due: make(chan chan<- struct{}), rows: map[string]*settlement{}}
}

// Fold records a call that did not reach a backend for an answer: a refused call, or one that only counts tokens. It counts in no total.
// Such calls of a Feature within one minute and for one reason share a row, which has their number and their details. The ledger writes it
// within a second, and a crash of the process loses it before that.
func (l *Ledger) Fold(ctx context.Context, i core.Interaction) {
	if i.FeatureUID == "" {
		return
	}
	i.Tokens, i.Cost, i.Raw, i.Formatted, i.Results, i.MoreResults, i.Status = core.Tokens{}, 0, nil, nil, nil, 0, max(i.Status, 0)
	s, err := l.prepare(ctx, i)
	if err != nil {
		return // the caller gave up
	}
	s.folds, s.refused, s.entry.ID = true, true, s.entry.FoldID()
	l.refused.keep(s)
}

// keep one until it is written.
func (r *refusals) keep(s *settlement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, is := r.rows[s.entry.ID]
	switch {
	case is:
		have.join(s)
	case len(r.rows) >= maxRefused:
		r.lost += s.count
	default:
		r.rows[s.entry.ID] = s
		if len(r.rows) == 1 {
			time.AfterFunc(refusedTime, func() { r.flush(context.Background()) })
		}
	}
}

// flush has them written.
func (r *refusals) flush(ctx context.Context) {
	done := make(chan struct{})
	select {
	case r.due <- done:
		select {
		case <-done:
		case <-ctx.Done():
		}
	case <-r.ledger.closing:
	case <-ctx.Done():
	}
}

// settle writes them. What cannot be written is kept for the next time.
func (r *refusals) settle() {
	r.mu.Lock()
	rows, lost := r.rows, r.lost
	r.rows, r.lost = map[string]*settlement{}, 0
	r.mu.Unlock()
	if lost > 0 {
		r.ledger.log.Warn("Did not record refused calls: too many Features had some at once", "calls", lost)
	}
	var batch []*settlement
	write := func() {
		r.ledger.full.makeRoom(batch)
		ctx, cancel := context.WithTimeout(context.Background(), commitTime)
		defer cancel()
		if _, err := r.ledger.record(ctx, quick, batch); err != nil {
			r.ledger.log.Warn("Cannot record refused calls", "rows", len(batch), "error", err.Error())
			for _, s := range batch {
				r.keep(s)
			}
		}
		batch = nil
	}
	for _, s := range rows {
		if batch = append(batch, s); len(batch) == maxBatch {
			write()
		}
	}
	if len(batch) > 0 {
		write()
	}
}

// folded are the settlements of a batch, each row once.
func folded(batch []*settlement) []*settlement {
	if !slices.ContainsFunc(batch, func(s *settlement) bool { return s.folds }) {
		return batch
	}
	rows, once := map[string]*settlement{}, make([]*settlement, 0, len(batch))
	for _, s := range batch {
		if have, is := rows[s.entry.ID]; is && s.folds {
			have.join(s)
			continue
		}
		if s.folds {
			copied := *s // a transaction may be tried again
			s = &copied
			rows[s.entry.ID] = s
		}
		once = append(once, s)
	}
	return once
}

// join another call of the same row.
func (s *settlement) join(other *settlement) {
	s.count += other.count
	s.entry.Detail = core.JoinDetails(s.entry.Detail, other.entry.Detail)
	if other.entry.At.After(s.entry.At) {
		s.entry.At = other.entry.At
	}
}

// fold counts calls in the row that they share. The row of the Feature is locked.
func (s *settlement) fold(ctx context.Context, tx *transaction, sequence int64) (fresh bool, err error) {
	row := *s
	switch err := tx.QueryRowContext(ctx, selectNote, s.entry.ID).Scan(&row.count, &row.entry.Detail); {
	case errors.Is(err, sql.ErrNoRows):
		if fresh, err = s.insert(ctx, tx, sequence); err != nil {
			return false, err
		}
		return fresh, s.note(ctx, tx)
	case err != nil:
		return false, err
	}
	row.join(s)
	if _, err := tx.ExecContext(ctx, moveTurn, row.entry.ID, row.entry.At.UnixNano()); err != nil {
		return false, err
	}
	return false, row.note(ctx, tx)
}

// note writes the additional content of a row.
func (s *settlement) note(ctx context.Context, tx *transaction) error {
	u := s.entry.Tokens.Uses
	_, err := tx.ExecContext(ctx, upsertNote, s.entry.ID, s.count, s.entry.Detail, u.Fetches, u.Executions, u.FileSearches, u.Images, u.Connectors)
	return err
}
