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

// reservations are what calls that have not ended may still cost. They are where all who decide about a budget see them: in the
// database that replicas share, or in the memory of the only process that has the database.
type reservations interface {
	// reserve a call, which replaces an earlier reservation of its ID, or return a *core.OverBudgetError.
	reserve(ctx context.Context, c claim) error
	// reserved for calls in a budget's scope that have not ended, and what is used of it.
	taken(ctx context.Context, b core.Budget) (used, reserved core.Amount, err error)
	// settle gives back what is reserved for a call, in the transaction that records it.
	settle(ctx context.Context, tx *transaction, id string) error
	// settled gets what such a transaction has recorded, its commit time, and the use since then.
	settled(batch []*settlement, used map[account]core.Amount)
	// end what is under way. Nothing is reserved afterwards.
	end()
}

// claim of a call.
type claim struct {
	core.Reservation

	budgets []core.Budget
}

// Reserve allows a call if it keeps to all budgets, across replicas, and otherwise returns a *core.OverBudgetError. Settle ends the call. A
// new reservation with the same ID replaces the old one.
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
	r.Wanted, budgets = bounded(r.Wanted), inOrder(budgets)
	for i := range budgets {
		budgets[i].Key = word(budgets[i].Key, maxWord)
	}
	return l.explain(ctx, what, l.reservations.reserve(ctx, claim{Reservation: r, budgets: budgets}))
}

// Taken returns the used part of a budget in its current period, and the part that calls in progress have reserved.
func (l *Ledger) Taken(ctx context.Context, b core.Budget) (used, reserved core.Amount, err error) {
	b.Key = word(b.Key, maxWord)
	used, reserved, err = l.reservations.taken(ctx, b)
	return used, reserved, l.explain(ctx, "read what is used of a budget", err)
}

// judge says which budget a call exceeds; err, if that is unknown. A limit that a user must raise comes before one that passes.
func (c claim) judge(taken func(core.Budget) (used, reserved core.Amount, err error)) (over, err error) {
	var wait error
	for _, b := range c.budgets {
		used, reserved, err := taken(b)
		if err != nil {
			return nil, err
		}
		over, is := errors.AsType[*core.OverBudgetError](core.Over(b, used, reserved, c.Wanted))
		switch {
		case is && !over.Passes():
			return over, nil
		case is && wait == nil:
			wait = over
		}
	}
	return wait, nil
}

// bounded is what a call uses or wants, so that sums always fit.
func bounded(a core.Amount) core.Amount {
	return core.Amount{Input: min(max(a.Input, 0), maxTokens), Output: min(max(a.Output, 0), maxTokens), Cost: min(max(a.Cost, 0), maxCost)}
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// scopes in the order in which their rows and locks are taken: what many share is had for the shortest time.
var scopes = []core.Scope{core.Feature, core.Project, core.Global}

// inOrder sorts budgets by their scopes. Those of a call have one key for each scope.
func inOrder(budgets []core.Budget) []core.Budget {
	return slices.SortedStableFunc(slices.Values(budgets), func(a, b core.Budget) int { return slices.Index(scopes, a.Scope) - slices.Index(scopes, b.Scope) })
}

// belongs says what is wrong with a budget for a call.
func belongs(r core.Reservation, b core.Budget) error {
	if key, is := keyOf(r, b.Scope); !is || key != b.Key {
		return fmt.Errorf("the budget %q of %q is not about the Feature %s in %q", b.Scope, b.Key, r.FeatureUID, r.Namespace)
	}
	return nil
}

// keyOf is the key of the budget of a scope that a call counts in; false, where there is no such scope.
func keyOf(r core.Reservation, s core.Scope) (string, bool) {
	switch s {
	case core.Feature:
		return r.FeatureUID, true
	case core.Project:
		return r.Namespace, true
	case core.Global:
		return "", true
	case core.Supervisor: // it has no budget
	}
	return "", false
}
