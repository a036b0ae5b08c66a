// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
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
		Rules: anomaly.Rules{
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
		"orders of an older manager": {
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

// TestAModelIsToldThePlanOfItsRole when its work falls off it.
func TestAModelIsToldThePlanOfItsRole(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		a.policy.Roles = []policy.Role{{Name: "implementor", Alternate: "Use the mirror.", Contingent: "Ask the librarian.", Emergency: "Close the book."}}
		a.policy.Anomalies.CheckEveryTurns = 1
		heard := map[string]int{}
		for turn := 1; turn <= 16; turn++ {
			sent := a.ask()
			for _, plan := range []string{"Alternate plan of your role: Use the mirror.", "Contingent plan of your role: Ask the librarian.", "Emergency plan of your role: Close the book."} {
				if heard[plan] == 0 && strings.Contains(sent, plan) {
					heard[plan] = turn
				}
			}
			a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: cannot")...)
		}
		want := map[string]int{"Alternate plan of your role: Use the mirror.": 4, "Contingent plan of your role: Ask the librarian.": 6, "Emergency plan of your role: Close the book.": 10}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("turns in which it is told (-want +got):\n%s", diff)
		}
	})
}

// TestHealth is what is seen: a plan that has failed twice is critical; anything that is wrong, and two failures in a row, are less.
func TestHealth(t *testing.T) {
	wrong := []protocol.Anomaly{{Type: "AgentLooping"}}
	for _, tc := range []struct {
		seen protocol.Conversation
		want string
	}{
		{protocol.Conversation{}, protocol.HealthNominal},
		{protocol.Conversation{Pace: protocol.PacePrimary, ToolFailures: 9}, protocol.HealthNominal},
		{protocol.Conversation{ToolFailuresInARow: 1}, protocol.HealthNominal},
		{protocol.Conversation{ToolFailuresInARow: 2}, protocol.HealthDegraded},
		{protocol.Conversation{Anomalies: wrong}, protocol.HealthDegraded},
		{protocol.Conversation{Pace: protocol.PaceAlternate, Anomalies: wrong}, protocol.HealthDegraded},
		{protocol.Conversation{Pace: protocol.PaceContingent, Anomalies: wrong}, protocol.HealthCritical},
		{protocol.Conversation{Pace: protocol.PaceEmergency, Anomalies: wrong, ToolFailuresInARow: 9}, protocol.HealthCritical},
	} {
		if got := health(&tc.seen); got != tc.want {
			t.Errorf("%+v is %s, want %s", tc.seen, got, tc.want)
		}
	}
}

// TestAnIdleAgentIsNotSilent: it waits for a person, or is frozen. Its silence begins when it has something to do.
func TestAnIdleAgentIsNotSilent(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.ask()
	a.service.Idle(true)
	if act := a.silent(12 * time.Hour); act != nil || len(a.book.steps) > 0 {
		t.Errorf("%+v, %+v", act, a.book.steps)
	}
	a.service.Idle(false)
	if a.silent(25 * time.Minute); len(a.book.steps) > 0 {
		t.Errorf("%+v", a.book.steps)
	}
	if a.silent(time.Hour); len(a.book.steps) != 1 || a.book.steps[0].Detector != anomaly.Silence {
		t.Errorf("%+v", a.book.steps)
	}
}
