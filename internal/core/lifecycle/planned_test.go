// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"
)

// TestPlanned: the condition exists for work that a model divides, and says what came of that.
func TestPlanned(t *testing.T) {
	for name, tc := range map[string]struct {
		planning bool
		run      *Run
		want     Condition
	}{
		"planned by the user": {false, nil, Condition{}},
		"not yet":             {true, nil, Condition{ConditionPlanned, Unknown, ReasonPlanning, "A model divides the work before the first task starts."}},
		"planned":             {true, &Run{Plan: &ModelPlan{Milestones: 2, Tasks: 5}}, Condition{ConditionPlanned, True, ReasonPlanProposed, "Milestones: 2. Tasks: 5. status.run.plan has the plan."}},
		"without a plan":      {true, &Run{Plan: &ModelPlan{Missing: "503"}}, Condition{ConditionPlanned, False, ReasonPlannerUnavailable, "There is no plan, and the work continues without one: 503."}},
	} {
		d := Next(Observed{Spec: Spec{Name: "login", Suspend: true, Planning: tc.planning}, Run: tc.run}, noon)
		if got := d.Memory.Condition(ConditionPlanned); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		told := slices.ContainsFunc(d.Events, func(e Event) bool { return e.Reason == ReasonPlannerUnavailable })
		if told != (tc.want.Reason == ReasonPlannerUnavailable) {
			t.Errorf("%s: events %+v", name, d.Events)
		}
	}
}
