// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"errors"
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
// ends with Settle. What a call has reserved before under the same ID is replaced.
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
	wanted := bounded(r.Wanted)
	return l.write(ctx, what, quick, func(tx *transaction) error {
		var wait error
		for _, b := range inOrder(budgets) {
			if err := l.engine.serialize(ctx, tx.Tx, b); err != nil {
				return err
			}
			used, reserved, err := l.taken(ctx, tx, b, r.ID)
			if err != nil {
				return err
			}
			over, is := errors.AsType[*core.OverBudgetError](core.Over(b, used, reserved, wanted))
			switch {
			case is && !over.Passes(): // what a person has to do comes first
				return over
			case is && wait == nil:
				wait = over
			}
		}
		if wait != nil {
			return wait
		}
		_, err := tx.ExecContext(ctx, upsertReservation, r.ID, r.FeatureUID, r.Namespace, wanted.Input, wanted.Output, wanted.Cost, r.Until.UnixNano())
		return err
	})
}

// bounded is what a call uses or wants, so that sums always fit.
func bounded(a core.Amount) core.Amount {
	return core.Amount{Input: min(max(a.Input, 0), maxTokens), Output: min(max(a.Output, 0), maxTokens), Cost: min(max(a.Cost, 0), maxCost)}
}

// Taken says what is used of a budget in its current period, and what is reserved for calls that have not ended.
func (l *Ledger) Taken(ctx context.Context, b core.Budget) (used, reserved core.Amount, err error) {
	err = l.read(ctx, "read what is used of a budget", func(db *sql.DB) error {
		used, reserved, err = l.taken(ctx, db, b, "")
		return err
	})
	return used, reserved, err
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// taken leaves out what is reserved for one call.
func (l *Ledger) taken(ctx context.Context, q querier, b core.Budget, but string) (used, reserved core.Amount, err error) {
	now := l.now()
	row := q.QueryRowContext(ctx, taken[b.Scope], string(b.Scope), word(b.Key, maxWord), b.Scope.Period(now), now.UnixNano(), but)
	err = row.Scan(&used.Input, &used.Output, &used.Cost, &reserved.Input, &reserved.Output, &reserved.Cost)
	return used, reserved, err
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
