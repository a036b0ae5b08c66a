// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"time"
)

// TimeoutProfile says how long a backend of models may say nothing before a call ends.
type TimeoutProfile string

// Timeout profiles.
const (
	TimeoutStandard TimeoutProfile = "Standard"
	TimeoutLong     TimeoutProfile = "Long"
	TimeoutExtended TimeoutProfile = "Extended"
)

// Silence that a profile allows. A profile that is not known allows the least.
func (p TimeoutProfile) Silence() time.Duration {
	switch p {
	case TimeoutLong:
		return 2 * time.Minute
	case TimeoutExtended:
		return 5 * time.Minute
	case TimeoutStandard:
	}
	return time.Minute
}

// LedgerFailure says what becomes of calls of models that the ledger cannot record.
type LedgerFailure string

// What becomes of such calls.
const (
	LedgerClosed LedgerFailure = "Closed"
	LedgerOpen   LedgerFailure = "Open"
)

// SupervisionRules are the values of Supervision that a source sets.
type SupervisionRules struct {
	Enabled        *bool
	TimeoutProfile TimeoutProfile
	MaxCorrections *int
}

// Supervision of the conversation between an agent and its models.
type Supervision struct {
	// Enabled composes what agents send. Calls are authenticated and recorded in any case.
	Enabled bool `json:"enabled"`
	// TimeoutProfile of calls.
	TimeoutProfile TimeoutProfile `json:"timeoutProfile"`
	// MaxCorrections of an agent whose work is not valid when it ends.
	MaxCorrections int `json:"maxCorrections,omitempty"`
}

func conversationRows() []Row {
	type r = Rules
	type e = Effective
	return []Row{
		supervisionEnabled(),
		choice("supervision.timeoutProfile", "How long a model may say nothing before a call ends: Standard 60s, Long 120s, Extended 300s.",
			func(x *r) *TimeoutProfile { return &x.Supervision.TimeoutProfile }, func(x *e) *TimeoutProfile { return &x.Supervision.TimeoutProfile },
			TimeoutStandard, TimeoutExtended, TimeoutLong, TimeoutStandard),
		corrections(),
		choice("ledger.onFailure", "What becomes of calls of models that cannot be recorded: Closed refuses them, Open lets them through.",
			func(x *r) *LedgerFailure { return &x.LedgerFailure }, func(x *e) *LedgerFailure { return &x.LedgerFailure },
			LedgerClosed, LedgerOpen, LedgerClosed),
	}
}

// builtinCorrections is what is usual for retries of a model's answer: requirements of such systems name 2.
const builtinCorrections = 2

// corrections may be none.
func corrections() Row {
	rules := func(x *Rules) **int { return &x.Supervision.MaxCorrections }
	return number(Row{
		Path: "supervision.maxCorrections", Purpose: "How often an agent is told in its session what is wrong, when it has ended and its work is not valid. Runtimes without sessions are not.",
		Builtin: strconv.Itoa(builtinCorrections), SetNumber: func(r *Rules, n int64) { *rules(r) = new(int(n)) },
	}, rules, func(x *Effective) *int { return &x.Supervision.MaxCorrections }, builtinCorrections, smaller, notNegative)
}

// supervisionEnabled can be switched off by a project only where a global policy switches it off too.
func supervisionEnabled() Row {
	const path = "supervision.enabled"
	rules := func(x *Rules) **bool { return &x.Supervision.Enabled }
	effective := func(x *Effective) *bool { return &x.Supervision.Enabled }
	row := flag(path, "Whether templates are put before what agents send to models. A project may switch it off only where a global policy does.", rules, effective, true, true)
	decided := row.merge
	row.merge = func(m *merger, e *Effective) {
		decided(m, e)
		if on := effective(e); !*on && !m.globalSets(flagValue(path, rules, true), false) {
			m.conflicts = append(m.conflicts, fmt.Sprintf("%s: %s switches it off, and no global policy permits that; it stays on", path, m.origins[path]))
			*on, m.origins[path] = true, "built-in"
		}
	}
	return row
}

// globalSets says whether a global policy sets a value to this.
func (m *merger) globalSets(v value[bool], to bool) bool {
	for i := range m.policies {
		for _, rules := range []*Rules{&m.policies[i].Defaults, &m.policies[i].Overrides} {
			if got, ok := v.of(rules); ok && got == to && m.policies[i].Scope == Global {
				return true
			}
		}
	}
	return false
}
