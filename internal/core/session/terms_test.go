// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// TestTerms: what a policy and a role say, each at its place; the role's own figures before those of the policy, and what is built in where
// neither says anything.
func TestTerms(t *testing.T) {
	builtin := policy.Merge(policy.Sources{})
	said := builtin
	said.Anomalies = policy.Anomalies{
		CheckEveryTurns: 31, CooldownTurns: 32, Stall: 33, Loop: 34, ContextPercent: 35, Cascade: 36, Silence: 37 * time.Minute, Hold: 38 * time.Minute, Ladder: policy.RungRollback,
	}
	said.Roles = []policy.Role{
		{Name: "dba", SaluteEveryTurns: 41, Stall: 42, Alternate: "a", Contingent: "c", Emergency: "e"},
		{Name: "writer", Emergency: "e"}, {Name: "tester", Contingent: "c"}, {Name: "reader", Alternate: "a"}, {Name: "reviewer", SaluteEveryTurns: 43}, {Name: "pupil"},
	}
	spoken := Terms{Task: "form", SaluteEvery: 5, Rules: steering.Rules{
		Thresholds: anomaly.Thresholds{
			CheckEvery: 31, Cooldown: 32, Stall: 33, Loop: 34, ContextPercent: 35, ContextUrgent: 90, Cascade: 36,
			Silence: 37 * time.Minute, ModelSilence: 20 * time.Minute, ToolSilence: 30 * time.Minute,
		},
		Ladder: steering.Rollback, HoldFor: 38 * time.Minute,
	}}
	client := anomaly.Compaction{Percent: 100, Free: 33_000}
	defaults := steering.Defaults()
	defaults.Compaction = client
	for name, tc := range map[string]struct {
		policy policy.Effective
		role   string
		change func(p *policy.Effective)
		want   func(t *Terms)
	}{
		"a policy alone": {policy: said, want: func(*Terms) {}},
		"a role": {policy: said, role: "dba", want: func(t *Terms) {
			t.SaluteEvery, t.Rules.Stall, t.Rules.Role = 41, 42, true
			t.Rules.Plan = steering.Plan{Alternate: "a", Contingent: "c", Emergency: "e"}
		}},
		"a plan for emergencies":   {policy: said, role: "writer", want: func(t *Terms) { t.Rules.Role, t.Rules.Plan.Emergency = true, "e" }},
		"a contingent plan":        {policy: said, role: "tester", want: func(t *Terms) { t.Rules.Role, t.Rules.Plan.Contingent = true, "c" }},
		"an alternate plan":        {policy: said, role: "reader", want: func(t *Terms) { t.Rules.Role, t.Rules.Plan.Alternate = true, "a" }},
		"a role without a plan":    {policy: said, role: "reviewer", want: func(t *Terms) { t.Rules.Role, t.SaluteEvery = true, 43 }}, // it has the built-in one
		"a role with a name alone": {policy: said, role: "pupil", want: func(t *Terms) { t.Rules.Role = true }},
		"a role that no one knows": {policy: said, role: "pilot", want: func(*Terms) {}},
		"late context pressure":    {policy: said, change: func(p *policy.Effective) { p.Anomalies.ContextPercent = 95 }, want: func(t *Terms) { t.Rules.ContextPercent, t.Rules.ContextUrgent = 95, 95 }},
		"only people are told":     {policy: said, change: func(p *policy.Effective) { p.Enforcement = policy.Audit }, want: func(t *Terms) { t.Rules.Ladder = steering.Observe }},
		"supervision is off":       {policy: said, change: func(p *policy.Effective) { p.Supervision.Enabled = false }, want: func(t *Terms) { t.Rules.Ladder = steering.Observe }},
		"what is built in":         {policy: builtin, role: "dba", want: func(t *Terms) { t.Rules = defaults; t.Rules.HoldFor = 5 * time.Minute }},
		"nothing is set": {
			policy: builtin, change: func(p *policy.Effective) { p.Anomalies = policy.Anomalies{} },
			want: func(t *Terms) { t.Rules = defaults },
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := spoken
			tc.want(&want)
			if tc.change != nil {
				tc.change(&tc.policy)
			}
			if diff := cmp.Diff(want, NewTerms("form", &tc.policy, tc.role, client)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
