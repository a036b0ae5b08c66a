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

	prepared map[string]*sql.Stmt
}

// prepared are the statements of each call.
func prepared(ctx context.Context, db *sql.DB) (map[string]*sql.Stmt, error) {
	all := map[string]*sql.Stmt{}
	for _, text := range []string{
		selectTaken, selectTakenByFeature, selectTakenByProject, upsertReservation, deleteReservation, lockTotals, addTotals, insertInteraction, countTurn,
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

// ExecContext carries a statement out.
func (t *transaction) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if s := t.prepared[text]; s != nil {
		return t.StmtContext(ctx, s).ExecContext(ctx, args...) //nolint:sqlclosecheck // it is closed with the transaction
	}
	return t.Tx.ExecContext(ctx, text, args...)
}

// QueryRowContext reads one row.
func (t *transaction) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if s := t.prepared[text]; s != nil {
		return t.StmtContext(ctx, s).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // it is closed with the transaction
	}
	return t.Tx.QueryRowContext(ctx, text, args...)
}
