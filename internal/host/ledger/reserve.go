// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

const (
	// maxTokens and maxCost of one call are more than any has, and so few that sums of them always fit.
	maxTokens, maxCost = 1 << 40, 1 << 50
	// maxID of a call, in bytes.
	maxID = 128
)

// Reserve lets a call be made if it keeps to all the budgets, across replicas, or gives a *core.OverBudgetError. The call then
// ends with Settle or Release. What a call has reserved before under the same ID is replaced.
func (l *Ledger) Reserve(ctx context.Context, r core.Reservation, budgets []core.Budget) error {
	const what = "reserve a call"
	if r.ID == "" || len(r.ID) > maxID || r.FeatureUID == "" {
		return fmt.Errorf("%s: give it an ID of 1 to %d bytes and the UID of its Feature", what, maxID)
	}
	for _, b := range budgets {
		if err := belongs(r, b); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	r.ID, r.FeatureUID, r.Namespace = word(r.ID, maxID), word(r.FeatureUID, maxWord), word(r.Namespace, maxWord)
	wanted := core.Amount{Tokens: min(max(r.Tokens, 0), maxTokens), Cost: min(max(r.Cost, 0), maxCost)}
	return l.write(ctx, what, quick, func(tx *sql.Tx) error {
		for _, b := range inOrder(budgets) {
			if err := l.engine.serialize(ctx, tx, b); err != nil {
				return err
			}
			var used, reserved core.Amount
			row := tx.QueryRowContext(ctx, taken[b.Scope], string(b.Scope), word(b.Key, maxWord), l.now().UnixNano(), r.ID)
			if err := row.Scan(&used.Tokens, &used.Cost, &reserved.Tokens, &reserved.Cost); err != nil {
				return err
			}
			if err := core.Over(b, used, reserved, wanted); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, upsertReservation, r.ID, r.FeatureUID, r.Namespace, wanted.Tokens, wanted.Cost, r.Until.UnixNano())
		return err
	})
}

// taken are the statements that read what is taken of a scope.
var taken = map[core.Scope]string{core.Feature: selectTakenByFeature, core.Project: selectTakenByProject, core.Global: selectTaken}

// scopes in the order in which their rows and locks are taken: what many share is had for the shortest time.
var scopes = []core.Scope{core.Feature, core.Project, core.Global}

// inOrder sorts budgets by their scopes. Those of a call have one key for each scope.
func inOrder(budgets []core.Budget) []core.Budget {
	return slices.SortedStableFunc(slices.Values(budgets), func(a, b core.Budget) int { return slices.Index(scopes, a.Scope) - slices.Index(scopes, b.Scope) })
}

// belongs says what is wrong with a budget for a call.
func belongs(r core.Reservation, b core.Budget) error {
	keys := map[core.Scope]string{core.Feature: r.FeatureUID, core.Project: r.Namespace, core.Global: ""}
	if key, is := keys[b.Scope]; !is || key != b.Key {
		return fmt.Errorf("the budget %q of %q is not about the Feature %s in %q", b.Scope, b.Key, r.FeatureUID, r.Namespace)
	}
	return nil
}

// Release gives back what was reserved for a call that never reached a model.
func (l *Ledger) Release(ctx context.Context, reservationID string) error {
	return l.write(ctx, "release a call", quick, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, deleteReservation, word(reservationID, maxID))
		return err
	})
}
