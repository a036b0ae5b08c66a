// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// TestReviewersHeeded: the condition says the figure of each reviewer, and stays as it is while the controller does not count.
func TestReviewersHeeded(t *testing.T) {
	style, design := review.Heed{Reviewer: "CodeStyle", Addressed: 5, Of: 20}, review.Heed{Reviewer: "Design", Addressed: 18, Of: 20}
	for name, c := range map[string]struct {
		have, counted []review.Heed
		want          Condition
	}{
		"nothing":          {},
		"heeded":           {nil, []review.Heed{design}, Condition{ConditionReviewersHeeded, True, ReasonDirectivesAddressed, design.Words()}},
		"one is not":       {[]review.Heed{design}, []review.Heed{style, design}, Condition{ConditionReviewersHeeded, False, ReasonFewDirectivesAddressed, style.Words() + " " + design.Words()}},
		"not counted":      {[]review.Heed{style}, nil, Condition{ConditionReviewersHeeded, False, ReasonFewDirectivesAddressed, style.Words()}},
		"too few to count": {[]review.Heed{style}, []review.Heed{}, Condition{}},
	} {
		d := Next(Observed{Spec: Spec{Name: "login", Suspend: true}, Memory: Memory{Heeds: c.have}, Heeds: c.counted}, noon)
		if diff := cmp.Diff(c.want, d.Memory.Condition(ConditionReviewersHeeded)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		told := slices.ContainsFunc(d.Events, func(e Event) bool { return e.Warning && e.Reason == ReasonFewDirectivesAddressed })
		if told != (c.want.Status == False) {
			t.Errorf("%s: events %+v", name, d.Events)
		}
	}
}
