// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

func effective(e policy.Enforcement, strategy, revert string) policy.Effective {
	return policy.Effective{Enforcement: e, Execution: policy.Execution{Strategy: strategy, RevertOnViolation: revert}}
}

func TestAct(t *testing.T) {
	var (
		valid    = judge.Judgement{Verdict: protocol.Valid}
		warned   = judge.Judgement{Verdict: protocol.Valid, Severity: policy.Warning}
		invalid  = judge.Judgement{Verdict: protocol.Invalid, Severity: policy.Error}
		critical = judge.Judgement{Verdict: protocol.Invalid, Severity: policy.Critical}
		direct   = effective(policy.Enforce, policy.StrategyDirect, policy.RevertNone)
		shadow   = effective(policy.Enforce, policy.StrategyShadow, policy.RevertNone)
		promoted = supervise.Consequence{Action: protocol.ActionPromoted, Promote: true}
		held     = supervise.Consequence{Action: protocol.ActionHeld}
		partly   = policy.Effective{Enforcement: policy.Enforce, Execution: policy.Execution{Strategy: policy.StrategyShadow, Promotion: policy.PromotionIncremental}}
		reverted = supervise.Consequence{Action: protocol.ActionReverted, Restore: supervise.RestoreAll}
	)
	for name, tc := range map[string]struct {
		judgement judge.Judgement
		policy    policy.Effective
		unsettled bool
		want      supervise.Consequence
	}{
		"a valid tree is promoted":                     {judgement: valid, policy: direct, want: promoted},
		"a warning does not hold it":                   {judgement: warned, policy: direct, want: promoted},
		"Shadow promotes a valid tree as well":         {judgement: valid, policy: shadow, want: promoted},
		"Direct holds an invalid one":                  {judgement: invalid, policy: direct, want: held},
		"Shadow takes it back":                         {judgement: invalid, policy: shadow, want: reverted},
		"Shadow Incremental looks for a part":          {judgement: invalid, policy: partly, want: supervise.Consequence{Action: protocol.ActionReverted, Restore: supervise.RestorePart}},
		"and promotes what is valid whole":             {judgement: valid, policy: partly, want: promoted},
		"an unsettled one is held, even when valid":    {judgement: valid, policy: direct, unsettled: true, want: held},
		"an unsettled one is not taken back":           {judgement: invalid, policy: shadow, unsettled: true, want: held},
		"nothing changed":                              {judgement: judge.Judgement{Verdict: protocol.Skipped}, policy: direct, want: supervise.Consequence{Action: protocol.ActionNone}},
		"no verdict at all holds":                      {policy: direct, want: held},
		"no verdict holds in an audit":                 {policy: effective(policy.Audit, policy.StrategyDirect, ""), want: held},
		"an audit lets it pass":                        {judgement: invalid, policy: effective(policy.Audit, policy.StrategyDirect, policy.RevertFull), want: promoted},
		"an audit does not take back":                  {judgement: critical, policy: effective(policy.Audit, policy.StrategyShadow, policy.RevertFull), want: promoted},
		"an unknown enforcement is none of an audit":   {judgement: invalid, policy: effective("", policy.StrategyDirect, ""), want: held},
		"Critical goes back where the policy says so":  {judgement: critical, policy: effective(policy.Enforce, policy.StrategyDirect, policy.RevertFull), want: reverted},
		"Error does not, there":                        {judgement: invalid, policy: effective(policy.Enforce, policy.StrategyDirect, policy.RevertFull), want: held},
		"Critical goes back path by path, if asked":    {judgement: critical, policy: effective(policy.Enforce, policy.StrategyDirect, policy.RevertViolatingPaths), want: supervise.Consequence{Action: protocol.ActionReverted, Restore: supervise.RestorePaths}},
		"Critical is held where nothing asks for more": {judgement: critical, policy: direct, want: held},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, supervise.Act(tc.judgement, tc.policy, !tc.unsettled)); diff != "" {
				t.Errorf("Act (-want +got):\n%s", diff)
			}
		})
	}
}

// Only a part that is valid as a whole, and something new, is promoted.
func TestPart(t *testing.T) {
	all := supervise.Consequence{Action: protocol.ActionReverted, Restore: supervise.RestoreAll}
	part := supervise.Consequence{Action: protocol.ActionPartlyPromoted, Promote: true, Restore: supervise.RestorePaths}
	for name, tc := range map[string]struct {
		verdict protocol.Verdict
		news    bool
		want    supervise.Consequence
	}{
		"a valid part":                {protocol.Valid, true, part},
		"nothing left":                {protocol.Valid, false, all},
		"a part that is invalid too":  {protocol.Invalid, true, all},
		"a part that was not judged":  {"", true, all},
		"a verdict that nobody knows": {"Perhaps", true, all},
	} {
		if diff := cmp.Diff(tc.want, supervise.Part(judge.Judgement{Verdict: tc.verdict}, tc.news)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Nothing but a settled and valid tree is ever promoted where the policy is enforced, and nothing is taken back that
// was not judged invalid.
func TestActFailsClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := judge.Judgement{
			Verdict:  rapid.SampledFrom([]protocol.Verdict{protocol.Valid, protocol.Invalid, protocol.Skipped, "", "Perhaps"}).Draw(t, "verdict"),
			Severity: rapid.SampledFrom([]policy.Severity{"", policy.Info, policy.Warning, policy.Error, policy.Critical}).Draw(t, "severity"),
		}
		p := effective(
			rapid.SampledFrom([]policy.Enforcement{"", policy.Enforce, policy.Audit, "Sometimes"}).Draw(t, "enforcement"),
			rapid.SampledFrom([]string{"", policy.StrategyDirect, policy.StrategyShadow}).Draw(t, "strategy"),
			rapid.SampledFrom([]string{"", policy.RevertNone, policy.RevertViolatingPaths, policy.RevertFull}).Draw(t, "revert"))
		settled := rapid.Bool().Draw(t, "settled")

		got := supervise.Act(j, p, settled)

		audit := p.Enforcement == policy.Audit
		if got.Promote && (!settled || j.Verdict != protocol.Valid && !(audit && j.Verdict == protocol.Invalid)) {
			t.Fatalf("promoted: settled %v, verdict %q, enforcement %q", settled, j.Verdict, p.Enforcement)
		}
		if got.Promote != (got.Action == protocol.ActionPromoted) {
			t.Fatalf("action %q does not say that Promote is %v", got.Action, got.Promote)
		}
		if got.Restore != supervise.RestoreNothing && (audit || !settled || j.Verdict != protocol.Invalid) {
			t.Fatalf("taken back: settled %v, verdict %q, enforcement %q", settled, j.Verdict, p.Enforcement)
		}
	})
}
