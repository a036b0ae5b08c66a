// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBudgets: policies decide in their order, a Feature takes less and never more, and what is for all is a global policy's.
func TestBudgets(t *testing.T) {
	cost := func(n int64) LimitRules { return LimitRules{Cost: &n} }
	feature := func(n int64) Rules { return Rules{Budget: BudgetRules{Feature: cost(n)}} }
	forAll := func(n int64) Rules { return Rules{Budget: BudgetRules{Global: cost(n)}} }
	month := func(n int64) Rules { return Rules{Budget: BudgetRules{Project: cost(n)}} }
	global := func(defaults, overrides Rules) Source {
		return Source{Name: "sys/g", Scope: Global, Defaults: defaults, Overrides: overrides}
	}
	project := func(defaults, overrides Rules) Source {
		return Source{Name: "shop/p", Scope: Project, Defaults: defaults, Overrides: overrides}
	}
	for name, tc := range map[string]struct {
		policies  []Source
		own       LimitRules
		path      string
		want      int64
		origin    string
		conflicts []string
	}{
		"nobody":                   {nil, LimitRules{}, "budget.maxCost", 0, "built-in", nil},
		"the Feature alone":        {nil, cost(5), "budget.maxCost", 5, "the Feature", nil},
		"a Feature takes less":     {[]Source{global(feature(10), Rules{})}, cost(5), "budget.maxCost", 5, "the Feature", nil},
		"a Feature takes no more":  {[]Source{global(feature(10), Rules{})}, cost(50), "budget.maxCost", 10, "defaults of sys/g", nil},
		"a project gives more":     {[]Source{global(feature(10), Rules{}), project(feature(20), Rules{})}, cost(50), "budget.maxCost", 20, "defaults of shop/p", nil},
		"but not over an override": {[]Source{global(Rules{}, feature(10)), project(feature(20), feature(30))}, LimitRules{}, "budget.maxCost", 10, "overrides of sys/g", nil},
		"less than an override":    {[]Source{global(Rules{}, feature(10))}, cost(5), "budget.maxCost", 5, "the Feature", nil},
		"a project's month":        {[]Source{global(month(10), Rules{}), project(month(20), Rules{})}, LimitRules{}, "budget.project.maxCost", 20, "defaults of shop/p", nil},
		"everybody's month":        {[]Source{global(forAll(10), Rules{})}, LimitRules{}, "budget.global.maxCost", 10, "defaults of sys/g", nil},
		"a project for everybody": {
			[]Source{global(forAll(10), Rules{}), project(forAll(20), forAll(30))}, LimitRules{}, "budget.global.maxCost", 10, "defaults of sys/g",
			[]string{
				"budget.global.maxCost: defaults of shop/p sets it, and only global policies may; it is not followed",
				"budget.global.maxCost: overrides of shop/p sets it, and only global policies may; it is not followed",
			},
		},
	} {
		e := Merge(Sources{Policies: tc.policies, FeatureBudget: tc.own})
		got := map[string]int64{"budget.maxCost": e.Budgets.Feature.Cost, "budget.project.maxCost": e.Budgets.Project.Cost, "budget.global.maxCost": e.Budgets.Global.Cost}[tc.path]
		if got != tc.want || e.Origins[tc.path] != tc.origin {
			t.Errorf("%s: %d from %q, want %d from %q", name, got, e.Origins[tc.path], tc.want, tc.origin)
		}
		if diff := cmp.Diff(tc.conflicts, e.Conflicts); diff != "" {
			t.Errorf("%s: conflicts (-want +got):\n%s", name, diff)
		}
		if e.Budgets.Any() != (tc.want > 0) {
			t.Errorf("%s: %+v", name, e.Budgets)
		}
	}
}
