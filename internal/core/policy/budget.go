// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"
)

const (
	// builtinWarnAtPercent of a budget: what users of such systems have as the usual share of an alert.
	builtinWarnAtPercent = 80
	// builtinCallsPerMinute is twice what an agent makes whose model answers within a second.
	builtinCallsPerMinute = 120
	// CallsPerMinute is the path of the rate of a Feature's calls.
	CallsPerMinute = "budget.callsPerMinute"
)

// LimitRules are the limits of one budget that a source sets. Cost is in millionths of the currency.
type LimitRules struct {
	InputTokens, OutputTokens, Cost *int64
}

// BudgetRules are the budgets that a source sets.
type BudgetRules struct {
	Feature, Project, Global LimitRules
	WarnAtPercent            *int
	CallsPerMinute           *int
}

// Limits of one budget; 0 means unlimited. Cost is in millionths of the currency.
type Limits struct {
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	Cost         int64 `json:"cost,omitempty"`
}

// Budgets limit the tokens and the cost of model calls.
type Budgets struct {
	// Feature limits all calls of the Feature. Project limits a project's calls, and Global all calls, in a calendar month.
	Feature Limits `json:"feature,omitzero"`
	Project Limits `json:"project,omitzero"`
	Global  Limits `json:"global,omitzero"`
	// WarnAtPercent is the used share of a budget from which on Tidewaiter warns users.
	WarnAtPercent int `json:"warnAtPercent"`
	// CallsPerMinute of one Feature, and how many it may make at once after a minute without any.
	CallsPerMinute int `json:"callsPerMinute,omitempty"`
}

// Any says whether anything is limited.
func (b Budgets) Any() bool {
	return b.Feature != Limits{} || b.Project != Limits{} || b.Global != Limits{}
}

func budgetRows() []Row {
	type l = LimitRules
	type e = Limits
	var rows []Row
	for _, b := range []struct {
		at, whose string
		rules     func(*Rules) *l
		effective func(*Effective) *e
		only      func(Row) Row
	}{
		{"budget.", "a Feature's model calls, over all attempts. A Feature can lower it in spec.budget",
			func(x *Rules) *l { return &x.Budget.Feature }, func(x *Effective) *e { return &x.Budgets.Feature }, lowered},
		{"budget.project.", "the model calls of a project's Features in a calendar month (UTC)",
			func(x *Rules) *l { return &x.Budget.Project }, func(x *Effective) *e { return &x.Budgets.Project }, func(r Row) Row { return r }},
		{"budget.global.", "all model calls in a calendar month (UTC). Only a global policy can set it",
			func(x *Rules) *l { return &x.Budget.Global }, func(x *Effective) *e { return &x.Budgets.Global }, globalOnly},
	} {
		rows = append(rows,
			b.only(count(b.at+"maxInputTokens", "Most input tokens of "+b.whose+". Tokens that the provider had cached count.",
				func(x *Rules) **int64 { return &b.rules(x).InputTokens }, func(x *Effective) *int64 { return &b.effective(x).InputTokens }, 0, smaller, from[int64](1, maxLarge))),
			b.only(count(b.at+"maxOutputTokens", "Most output tokens of "+b.whose+".",
				func(x *Rules) **int64 { return &b.rules(x).OutputTokens }, func(x *Effective) *int64 { return &b.effective(x).OutputTokens }, 0, smaller, from[int64](1, maxLarge))),
			b.only(money(b.at+"maxCost", "Most cost of "+b.whose+".",
				func(x *Rules) **int64 { return &b.rules(x).Cost }, func(x *Effective) *int64 { return &b.effective(x).Cost })))
	}
	return append(rows, count("budget.warnAtPercent", "Share of a budget, in percent, at which the condition WithinBudget begins to warn.",
		func(x *Rules) **int { return &x.Budget.WarnAtPercent }, func(x *Effective) *int { return &x.Budgets.WarnAtPercent }, builtinWarnAtPercent, smaller, from(1, 100)),
		count(CallsPerMinute, "How many model calls a Feature can make in a minute, including calls that the gateway refuses. After a minute without calls it can make all of these at once. Each replica of the gateway counts for itself.",
			func(x *Rules) **int { return &x.Budget.CallsPerMinute }, func(x *Effective) *int { return &x.Budgets.CallsPerMinute }, builtinCallsPerMinute, smaller, from(1, maxCount)))
}

// money is an amount without a built-in limit.
func money(path, purpose string, rules func(*Rules) **int64, effective func(*Effective) *int64) Row {
	row := number(Row{Path: path, Purpose: purpose, Builtin: "no limit", SetMoney: func(r *Rules, millionths int64) { *rules(r) = &millionths }},
		rules, effective, 0, smaller, from[int64](1, endless), func(n int64) string { return strconv.FormatInt(n, 10) })
	row.Allowed = "a decimal number more than 0, in the currency of the gateway's prices"
	return row
}

// lowered makes a row of a value of which a Feature takes less than policies give it, and never more.
func lowered(row Row) Row {
	decided := row.merge
	row.merge = func(m *merger, e *Effective) {
		m.without(decided, e, levelFeature)
		limit, _ := row.effective(e).(*int64)
		for _, own := range m.levels[levelFeature] {
			mine, _ := row.rules(own.rules).(**int64)
			if *mine != nil && (*limit == 0 || **mine < *limit) {
				*limit, m.origins[row.Path] = **mine, own.origin
			}
		}
	}
	return row
}

// globalOnly makes a row of a number that policies of projects cannot set.
func globalOnly(row Row) Row {
	decided := row.merge
	row.merge = func(m *merger, e *Effective) {
		m.without(decided, e, levelProjectOverrides, levelFeature, levelProjectDefaults)
		for _, l := range []int{levelProjectOverrides, levelProjectDefaults} {
			for _, x := range m.levels[l] {
				if sets(row.rules(x.rules)) {
					m.conflicts = append(m.conflicts, fmt.Sprintf("%s: %s sets it, and only global policies may; it is not followed", row.Path, x.origin))
				}
			}
		}
	}
	return row
}

// sets says whether rules set a number.
func sets(number any) bool {
	switch n := number.(type) {
	case **int64:
		return *n != nil
	case **int:
		return *n != nil
	}
	return false
}

// without merges a value as if some levels said nothing.
func (m *merger) without(merge func(*merger, *Effective), e *Effective, levels ...int) {
	others := *m
	others.levels = slices.Clone(m.levels)
	for _, l := range levels {
		others.levels[l] = nil
	}
	merge(&others, e)
	m.conflicts = others.conflicts
}
