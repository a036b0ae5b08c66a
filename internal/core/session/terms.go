// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// Terms are the policy's values for one agent.
type Terms struct {
	// Task of the agent; empty if it has none.
	Task  string
	Rules steering.Rules
	// SaluteEvery is the number of turns between two status reports.
	SaluteEvery int
}

// NewTerms takes the terms from a task's policy, from the agent's role, which may be empty, and from the point at which its client compacts
// the context by itself. If the policy says how full the context may be, its value decides.
func NewTerms(task string, p *policy.Effective, role string, compaction anomaly.Compaction) Terms {
	t := Terms{Task: task, Rules: steering.Defaults(), SaluteEvery: policy.BuiltinSalute}
	r, named := p.Role(role)
	a := p.Anomalies
	t.Rules.Role = named // where its plan says nothing of a level, something is built in
	for _, v := range []struct {
		to   *int
		from []int
	}{
		{&t.Rules.CheckEvery, []int{a.CheckEveryTurns}},
		{&t.Rules.Cooldown, []int{a.CooldownTurns}},
		{&t.Rules.Stall, []int{r.Stall, a.Stall}},
		{&t.Rules.Loop, []int{a.Loop}},
		{&t.Rules.ContextPercent, []int{a.ContextPercent}},
		{&t.Rules.Cascade, []int{a.Cascade}},
		{&t.SaluteEvery, []int{r.SaluteEveryTurns}},
	} {
		*v.to = cmp.Or(append(v.from, *v.to)...)
	}
	if a.ContextPercent == 0 {
		t.Rules.Compaction = compaction
	}
	t.Rules.Silence = cmp.Or(a.Silence, t.Rules.Silence)
	t.Rules.ContextUrgent = max(t.Rules.ContextUrgent, t.Rules.ContextPercent)
	t.Rules.Plan = steering.Plan{Alternate: r.Alternate, Contingent: r.Contingent, Emergency: r.Emergency}
	t.Rules.HoldFor = a.Hold
	if t.Rules.Ladder = cmp.Or(a.Ladder, t.Rules.Ladder); p.Enforcement == policy.Audit || !p.Supervision.Enabled { // only users learn of it
		t.Rules.Ladder = steering.Observe
	}
	return t
}
