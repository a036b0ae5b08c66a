// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"slices"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// climbed are the rungs that are tried, in their order, while some findings stay what they are.
func climbed(findings ...anomaly.Finding) (all []Rung) {
	r := Defaults()
	r.Ladder, r.CheckEvery, r.Cooldown, r.HoldFor = Block, 1, 1, time.Minute
	var s State
	wrong := episodes(findings...)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for turn := range int64(40) {
		now = now.Add(2 * time.Minute)
		at := TurnContext{Thread: 1, Kind: conversation.KindMain, Turn: turn + 1, Now: now}
		for {
			step, more := s.Decide(wrong, at, r)
			if !more {
				break
			}
			if !slices.Contains(all, step.Rung) || step.Halts() {
				all = append(all, step.Rung)
			}
		}
	}
	return all
}

// TestClimbing says how far each finding climbs where the ladder goes to its end.
func TestClimbing(t *testing.T) {
	const evidence = "something is wrong"
	finding := func(kind anomaly.Kind, detector string, tier anomaly.Tier) anomaly.Finding {
		return anomaly.Finding{Kind: kind, Detector: detector, Thread: 1, Main: true, Turn: 1, Tier: tier, Evidence: evidence}
	}
	pace := func(causes string, level anomaly.Level) anomaly.Finding {
		f := finding(anomaly.PaceEscalated, anomaly.Pace, anomaly.Warn)
		f.Causes, f.Level = causes, level
		return f
	}
	worked := func(f anomaly.Finding) anomaly.Finding { f.Worked = true; return f }
	succeeds := func(f anomaly.Finding) anomaly.Finding { f.Succeeds = true; return f }
	words := []Rung{Nudge, Directive}
	all := append(slices.Clone(words), Hold, Rollback, Restart, Block)
	for name, tc := range map[string]struct {
		findings []anomaly.Finding
		want     []Rung
	}{
		"a stall":                               {[]anomaly.Finding{finding(anomaly.AgentStalled, anomaly.Stall, anomaly.Warn)}, all},
		"a stall after calls that brought much": {[]anomaly.Finding{worked(finding(anomaly.AgentStalled, anomaly.Stall, anomaly.Warn))}, all[:3]},
		"the same with a plan":                  {[]anomaly.Finding{worked(pace(anomaly.Stall, anomaly.Contingent)), worked(finding(anomaly.AgentStalled, anomaly.Stall, anomaly.Warn))}, all[:3]},
		"a way that leads nowhere":              {[]anomaly.Finding{worked(finding(anomaly.AgentStalled, anomaly.Trials, anomaly.Warn))}, all},
		"the same way with a plan":              {[]anomaly.Finding{pace(anomaly.Trials, anomaly.Alternate), finding(anomaly.AgentStalled, anomaly.Trials, anomaly.Warn)}, all},
		"an emergency of a plan":                {[]anomaly.Finding{pace(anomaly.Trials, anomaly.Emergency)}, append([]Rung{Nudge}, all[2:]...)},
		"a failure at its last tier":            {[]anomaly.Finding{finding(anomaly.AgentLooping, anomaly.SameFailure, anomaly.Breaker)}, []Rung{NoTools, Hold, Rollback, Restart, Block, Directive}},
		"a success at its last tier":            {[]anomaly.Finding{succeeds(finding(anomaly.AgentLooping, anomaly.SameResult, anomaly.Breaker))}, []Rung{Nudge, Directive, Surgery, Hold, Rollback, Restart, Block}},
		"a context that is full":                {[]anomaly.Finding{finding(anomaly.ContextPressure, anomaly.Pressure, anomaly.Surgery)}, words},
	} {
		if got := climbed(tc.findings...); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestOneMeasureForOneRun: what is done with the whole run is done once, whatever else is found of it.
func TestOneMeasureForOneRun(t *testing.T) {
	loop := anomaly.Finding{Kind: anomaly.AgentLooping, Detector: anomaly.Reversal, Thread: 1, Main: true, Turn: 1, Tier: anomaly.Warn, Evidence: "it goes in circles"}
	pace := anomaly.Finding{Kind: anomaly.PaceEscalated, Detector: anomaly.Pace, Causes: anomaly.Reversal, Level: anomaly.Contingent, Thread: 1, Main: true, Turn: 1, Tier: anomaly.Warn, Evidence: "it goes in circles"}
	got := slices.DeleteFunc(climbed(pace, loop), func(r Rung) bool { return !above(r, NoTools) })
	slices.SortFunc(got, func(a, b Rung) int { return slices.Index(all(), a) - slices.Index(all(), b) })
	if want := []Rung{Hold, Rollback, Restart, Block}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func all() []Rung {
	return []Rung{Observe, Nudge, Directive, Surgery, NoTools, Hold, Rollback, Restart, Block}
}
