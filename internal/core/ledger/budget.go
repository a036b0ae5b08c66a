// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"math/big"
	"time"
)

// Scope is the set of calls that a budget limits.
type Scope string

// Scopes of budgets.
const (
	// Feature budgets have the UID of a Feature as their key. They last as long as the Feature.
	Feature Scope = "Feature"
	// Project budgets have a namespace as their key. They are for a calendar month.
	Project Scope = "Project"
	// Global budgets are about all calls and have no key. They are for a calendar month.
	Global Scope = "Global"
)

// Supervisor is the scope of Tidewaiter's own calls for a Feature, with its UID as the key: a part of what Feature has. No budget has it.
const Supervisor Scope = "Supervisor"

// Period returns the period of a time for budgets of this scope: a month in UTC, such as "2026-02"; empty if there is only one period.
func (s Scope) Period(at time.Time) string {
	if s == Feature || s == Supervisor {
		return ""
	}
	return at.UTC().Format("2006-01")
}

// Resource that a budget limits.
type Resource string

// Resources that budgets limit, by the names that they have in a policy.
const (
	InputTokens  Resource = "maxInputTokens"
	OutputTokens Resource = "maxOutputTokens"
	Cost         Resource = "maxCost"
)

// Resources are all of them.
func Resources() []Resource { return []Resource{InputTokens, OutputTokens, Cost} }

// Amount of each resource: tokens, and money in millionths of the currency. Input includes cached tokens.
type Amount struct {
	Input, Output, Cost int64
}

// Of a resource.
func (a Amount) Of(r Resource) int64 {
	switch r {
	case InputTokens:
		return a.Input
	case OutputTokens:
		return a.Output
	case Cost:
	}
	return a.Cost
}

// Plus adds amounts. What does not fit is the largest number.
func (a Amount) Plus(b Amount) Amount {
	return Amount{Input: add(a.Input, b.Input), Output: add(a.Output, b.Output), Cost: add(a.Cost, b.Cost)}
}

// String writes an amount for a header, to be read by ParseAmount.
func (a Amount) String() string { return fmt.Sprintf("%d,%d,%d", a.Input, a.Output, a.Cost) }

// ParseAmount reads what String has written; what cannot be read is nothing.
func ParseAmount(text string) Amount {
	var a Amount
	if n, err := fmt.Sscanf(text, "%d,%d,%d", &a.Input, &a.Output, &a.Cost); n != 3 || err != nil || a.Input < 0 || a.Output < 0 || a.Cost < 0 {
		return Amount{}
	}
	return a
}

// Usage is what calls that have ended have used, and how many they are.
type Usage struct {
	Amount

	// Cached is the number of input tokens that the provider had in its cache.
	Cached int64
	Calls  int64
}

// Budget limits the use of the calls of a scope.
type Budget struct {
	Scope Scope
	// Key is whose budget it is: see Scope.
	Key string
	// Limit of each resource; 0 means unlimited.
	Limit Amount
	// Origins tell users where the limits are set.
	Origins map[Resource]string
}

// Any says whether the budget limits anything.
func (b Budget) Any() bool { return b.Limit != Amount{} }

// OverBudgetError says which limit a call would go over.
type OverBudgetError struct {
	Scope    Scope
	Key      string
	Resource Resource
	// Origin tells users where the limit is set; empty if that is not known.
	Origin string
	// Limit of the resource, how much is Used, how much is Reserved for calls that have not ended, and how much is Wanted.
	Limit, Used, Reserved, Wanted int64
}

// Passes says whether the budget allows the call if the calls in progress end without using anything: then it is worth trying again, and no
// user has to act.
func (e *OverBudgetError) Passes() bool {
	return e.Used < e.Limit && e.Wanted <= e.Limit-e.Used
}

// Error says what is left, and what to do.
func (e *OverBudgetError) Error() string {
	left := whose(e.Scope, e.Key) + " has " + e.Resource.left(max(0, e.Limit-e.Used), e.Limit)
	switch e.Resource {
	case Cost:
		left += ", and the next call may cost " + Decimal(e.Wanted)
	case InputTokens, OutputTokens:
		left += fmt.Sprintf(", and the next call may take %d", e.Wanted)
	}
	switch {
	case e.Passes():
		return left + "; calls under way may take the rest: try again when they have ended"
	case e.Origin == "the Feature":
		return left + "; raise spec." + e.path() + " of the Feature"
	case e.Origin != "":
		return left + "; raise " + e.path() + " of the SupervisorPolicy (" + e.Origin + ")"
	}
	return left + "; raise " + e.path()
}

// path of the limit in the rules of a SupervisorPolicy.
func (e *OverBudgetError) path() string {
	switch e.Scope {
	case Project:
		return "budget.project." + string(e.Resource)
	case Global:
		return "budget.global." + string(e.Resource)
	case Feature, Supervisor: // the role has no budget of its own
	}
	return "budget." + string(e.Resource)
}

func whose(s Scope, key string) string {
	switch s {
	case Project:
		return fmt.Sprintf("this month's budget of the project %q", key)
	case Global:
		return "this month's global budget"
	case Feature, Supervisor:
	}
	return "the budget of the Feature"
}

// left of a limit, as people write it.
func (r Resource) left(n, limit int64) string {
	switch r {
	case InputTokens:
		return fmt.Sprintf("%d of %d input tokens left", n, limit)
	case OutputTokens:
		return fmt.Sprintf("%d of %d output tokens left", n, limit)
	case Cost:
	}
	return fmt.Sprintf("%s of %s left", Decimal(n), Decimal(limit))
}

// Over says whether a call that wants an amount exceeds a budget, given what is used and what calls in progress have reserved. The error is
// an *OverBudgetError. A limit that a user must raise comes before a limit that only needs waiting. The use of a call is known only when it
// ends, so calls in progress can use more than they have reserved. The gateway then refuses every other call.
func Over(b Budget, used, reserved, wanted Amount) error {
	var wait error
	for _, r := range Resources() {
		limit, u, taken := b.Limit.Of(r), used.Of(r), add(used.Of(r), reserved.Of(r))
		if limit <= 0 || taken < limit && wanted.Of(r) <= limit-taken {
			continue
		}
		e := &OverBudgetError{Scope: b.Scope, Key: b.Key, Resource: r, Origin: b.Origins[r], Limit: limit, Used: u, Reserved: reserved.Of(r), Wanted: wanted.Of(r)}
		if !e.Passes() {
			return e
		}
		if wait == nil {
			wait = e
		}
	}
	return wait
}

// Nearly tells users how much is left of a budget's most used resource; empty while the used share is below percent.
func Nearly(b Budget, used Amount, percent int) string {
	text, most := "", new(big.Rat)
	for _, r := range Resources() {
		limit, u := b.Limit.Of(r), used.Of(r)
		if limit <= 0 {
			continue
		}
		share := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(u), big.NewInt(100)), big.NewInt(limit))
		if share.Cmp(new(big.Rat).SetInt64(int64(percent))) < 0 || share.Cmp(most) <= 0 {
			continue
		}
		most = share
		text = whose(b.Scope, b.Key) + " has " + r.left(max(0, limit-u), limit)
	}
	return text
}
