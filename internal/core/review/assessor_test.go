// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

const aligned, drift, divergence = protocol.ReviewAligned, protocol.ReviewMinorDrift, protocol.ReviewMajorDivergence

// TestRTrigVerdictsDecideTheInterval of the assessor.
func TestRTrigVerdictsDecideTheInterval(t *testing.T) {
	for name, tc := range map[string]struct {
		every    int
		verdicts []string
		want     int
	}{
		"before the first verdict":         {5, nil, 5},
		"a policy with a shorter one":      {1, nil, 3},
		"a policy with a longer one":       {40, nil, 10},
		"aligned":                          {5, []string{aligned}, 6},
		"aligned for long":                 {5, []string{aligned, aligned, aligned, aligned, aligned, aligned}, 10},
		"a drift":                          {6, []string{drift}, 4},
		"a drift of work that was aligned": {9, []string{aligned, drift}, 8},
		"drifts":                           {5, []string{drift, drift}, 3},
		"a divergence":                     {9, []string{divergence}, 3},
		"aligned after a divergence":       {9, []string{divergence, aligned}, 4},
	} {
		p := assessed()
		p.Reviewers.Assessor.OnMilestone, p.Reviewers.Assessor.EveryTasks = false, tc.every
		p.Reviewers.CodeStyle.EveryTasks = 0
		h, over := review.History{}, 0
		for _, verdict := range tc.verdicts {
			over++
			h = h.Assessed(assessor, over, "tree", verdict, p)
		}
		got := 1
		for names(h, p, review.Breakpoint{Over: over + got}) == nil && got < 100 {
			got++
		}
		if got != tc.want {
			t.Errorf("%s: it looks after %d tasks, want %d", name, got, tc.want)
		}
		p.Reviewers.Assessor.EveryTasks = 0
		if due := names(h, p, review.Breakpoint{Over: over + 50}); due != nil {
			t.Errorf("%s: %v are due by a policy that does not count tasks", name, due)
		}
	}
}

// TestAPolicyOfAVersionWithoutAnAssessor: it does not run by one, whatever model answers, so that what follows from earlier records stays the same.
func TestAPolicyOfAVersionWithoutAnAssessor(t *testing.T) {
	p := assessed()
	p.Reviewers.Assessor = policy.Reviewer{}
	if _, counts := (review.History{}).Happened(review.TaskAborted, p)[assessor]; counts || len(review.All(p)) != 2 {
		t.Errorf("%d reviewers run", len(review.All(p)))
	}
}

// TestRLTheIntervalOfTheAssessor: whatever its verdicts are, it looks after 3 to 10 tasks.
func TestRLTheIntervalOfTheAssessor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := assessed()
		p.Reviewers.Assessor.EveryTasks = rapid.IntRange(1, 1_000_000).Draw(t, "every")
		h, last := review.History{}, 0
		for over := 1; over <= 100; over++ {
			gap, due := over-last, slices.Contains(names(h, p, review.Breakpoint{Over: over}), assessor)
			if due && gap < 3 || !due && gap >= 10 {
				t.Fatalf("it is due %d tasks after the last look: %t", gap, due)
			}
			if due {
				last = over
				h = h.Assessed(assessor, over, "tree", rapid.SampledFrom([]string{aligned, drift, divergence}).Draw(t, "verdict"), p)
			}
		}
	})
}

// TestTheAssessorLooksLast: it is due after the others, and nobody looks after it at the same breakpoint.
func TestTheAssessorLooksLast(t *testing.T) {
	p, b := assessed(), review.Breakpoint{Over: 1, Milestone: true}
	h := review.History{}
	if got := names(h, p, b); !slices.Equal(got, []string{style, design, assessor}) {
		t.Errorf("%v are due", got)
	}
	h = h.Assessed(assessor, 1, "tree", drift, p).Happened(review.TaskAborted, p)
	if got := names(h, p, b); got != nil {
		t.Errorf("%v are due after it", got)
	}
	if got := names(h, p, review.Breakpoint{Over: 2}); !slices.Equal(got, []string{style, design, assessor}) {
		t.Errorf("%v are due at the next breakpoint", got)
	}
}

// TestRUrgADriftMakesOthersLook: it adds 0.5 to the urgency of each other reviewer, and nothing to that of the assessor. A skipped look keeps urgency.
func TestRUrgADriftMakesOthersLook(t *testing.T) {
	p := assessed()
	h := review.History{}.Happened(review.Drifted, p)
	if h[style].Urgency != 50 || h[design].Urgency != 50 || h[assessor].Urgency != 0 {
		t.Errorf("urgency %+v", h)
	}
	h = h.Happened(review.Drifted, p)
	if got := names(h, p, review.Breakpoint{Over: 1}); !slices.Equal(got, []string{style, design}) {
		t.Errorf("%v are due after two drifts", got)
	}
	h = h.Happened(review.TaskAborted, p).Skipped(assessor, 1)
	if got := h[assessor]; got.Urgency != 100 || !slices.Contains(names(h, p, review.Breakpoint{Over: 2}), assessor) {
		t.Errorf("after a skipped look: %+v", got)
	}
	if got := h.Assessed(assessor, 2, "tree", aligned, p)[assessor]; got.Urgency != 0 || got.Called || got.Tree != "tree" {
		t.Errorf("after a look: %+v", got)
	}
}
