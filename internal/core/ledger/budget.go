// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import "fmt"

// Scope is what a budget is about.
type Scope string

// Scopes of budgets.
const (
	// Feature budgets have the UID of a Feature as their key.
	Feature Scope = "Feature"
	// Project budgets have a namespace as their key.
	Project Scope = "Project"
	// Global budgets are about all calls and have no key.
	Global Scope = "Global"
)

// Budget limits what the calls of a scope may use.
type Budget struct {
	Scope Scope
	// Key is whose budget it is: see Scope.
	Key string
	// MaxTokens and MaxCost, in millionths of the currency; 0 is no limit.
	MaxTokens, MaxCost int64
}

// Amount of tokens, and of money in millionths of the currency.
type Amount struct {
	Tokens, Cost int64
}

// Plus adds amounts. What does not fit is the largest number.
func (a Amount) Plus(b Amount) Amount {
	return Amount{Tokens: add(a.Tokens, b.Tokens), Cost: add(a.Cost, b.Cost)}
}

// Resource that a budget limits.
type Resource string

// Resources that budgets limit.
const (
	ResourceTokens Resource = "tokens"
	ResourceCost   Resource = "cost"
)

// OverBudgetError says which limit a call would go over.
type OverBudgetError struct {
	Scope    Scope
	Key      string
	Resource Resource
	// Limit of the resource, how much is Used, how much is Reserved for calls that have not ended, and how much is Wanted.
	Limit, Used, Reserved, Wanted int64
}

// Error implements error.
func (e *OverBudgetError) Error() string {
	whose := "the global budget"
	switch e.Scope {
	case Feature:
		whose = "the budget of the Feature"
	case Project:
		whose = fmt.Sprintf("the budget of the project %q", e.Key)
	case Global:
	}
	return fmt.Sprintf("%s leaves %s: the limit is %s, %s is used and %s is reserved for calls that have not ended; raise the limit, or wait for these calls",
		whose, e.amount(max(0, e.Limit-e.Used-e.Reserved)), e.amount(e.Limit), e.amount(e.Used), e.amount(e.Reserved))
}

// amount as people write it: money in units of the currency.
func (e *OverBudgetError) amount(n int64) string {
	if e.Resource == ResourceCost {
		return "a cost of " + Decimal(n)
	}
	return fmt.Sprintf("%d tokens", n)
}

// Over says whether a call that wants an amount goes over a budget of which some is used and some is reserved for calls that
// have not ended. The error is an *OverBudgetError. What a call uses is known only when it has ended, so calls under way can
// use more than was reserved for them; then no other call is made.
func Over(b Budget, used, reserved, wanted Amount) error {
	for _, r := range [...]struct {
		resource                      Resource
		limit, used, reserved, wanted int64
	}{
		{ResourceTokens, b.MaxTokens, used.Tokens, reserved.Tokens, wanted.Tokens},
		{ResourceCost, b.MaxCost, used.Cost, reserved.Cost, wanted.Cost},
	} {
		taken := add(r.used, r.reserved)
		if r.limit > 0 && (taken >= r.limit || r.wanted > r.limit-taken) {
			return &OverBudgetError{Scope: b.Scope, Key: b.Key, Resource: r.resource, Limit: r.limit, Used: r.used, Reserved: r.reserved, Wanted: r.wanted}
		}
	}
	return nil
}
