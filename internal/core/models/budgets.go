// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Budgets that limit anything for a Feature with this UID in this namespace, with where each limit is set.
func Budgets(e policy.Effective, uid, namespace string) []ledger.Budget {
	var list []ledger.Budget
	for _, b := range []struct {
		scope   ledger.Scope
		key, at string
		limits  policy.Limits
	}{
		{ledger.Feature, uid, "budget.", e.Budgets.Feature},
		{ledger.Project, namespace, "budget.project.", e.Budgets.Project},
		{ledger.Global, "", "budget.global.", e.Budgets.Global},
	} {
		budget := ledger.Budget{
			Scope: b.scope, Key: b.key, Origins: map[ledger.Resource]string{},
			Limit: ledger.Amount{Input: b.limits.InputTokens, Output: b.limits.OutputTokens, Cost: b.limits.Cost},
		}
		if !budget.Any() {
			continue
		}
		for _, r := range ledger.Resources() {
			budget.Origins[r] = e.Origins[b.at+string(r)]
		}
		list = append(list, budget)
	}
	return list
}

// Rate of calls that a Feature keeps to.
type Rate struct {
	// PerMinute is how many calls it may make in a minute; 0 means unlimited.
	PerMinute int
	// Origin tells users where the limit is set.
	Origin string
}

// RateOf a Feature's calls, with where it is set.
func RateOf(e policy.Effective) Rate {
	return Rate{PerMinute: e.Budgets.CallsPerMinute, Origin: e.Origins[policy.CallsPerMinute]}
}
