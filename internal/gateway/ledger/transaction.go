// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
)

// transaction uses prepared statements where there are any: to read the text of a statement takes SQLite as long as what it does.
type transaction struct {
	*sql.Tx

	engine   engine
	prepared map[string]*sql.Stmt
	// bound are the ones that the transaction has used.
	bound map[string]*sql.Stmt
	// features that are known, by UID: to who has the database to itself, from the transaction before.
	features map[string]feature
	// calls says that the transaction records calls: it has kept the features as they are. Any other one may have changed them.
	calls bool
}

// prepared are the statements of each call.
func prepared(ctx context.Context, db *sql.DB) (map[string]*sql.Stmt, error) {
	all := map[string]*sql.Stmt{}
	for _, text := range []string{
		selectTaken, selectTakenByFeature, selectTakenByProject, upsertReservation, deleteReservation, lockTotals, addTotals, insertInteraction,
		upsertFeature,
	} {
		statement, err := db.PrepareContext(ctx, text) //nolint:sqlclosecheck // it is closed with the database
		if err != nil {
			return nil, err
		}
		all[text] = statement
	}
	return all, nil
}

// statement that was prepared; nil for none. It is closed with the transaction.
func (t *transaction) statement(ctx context.Context, text string) *sql.Stmt {
	s := t.bound[text]
	if s == nil && t.prepared[text] != nil {
		s = t.StmtContext(ctx, t.prepared[text])
		t.bound[text] = s
	}
	return s
}

// ExecContext carries a statement out.
func (t *transaction) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	ctx = t.engine.statements(ctx)
	if s := t.statement(ctx, text); s != nil { //nolint:sqlclosecheck // the transaction closes it
		return s.ExecContext(ctx, args...)
	}
	return t.Tx.ExecContext(ctx, text, args...)
}

// QueryRowContext reads one row.
func (t *transaction) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	ctx = t.engine.statements(ctx)
	if s := t.statement(ctx, text); s != nil { //nolint:sqlclosecheck // the transaction closes it
		return s.QueryRowContext(ctx, args...)
	}
	return t.Tx.QueryRowContext(ctx, text, args...)
}
