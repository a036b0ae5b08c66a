// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestPlanned: the condition exists for work that a model divides, and says what came of that.
func TestPlanned(t *testing.T) {
	for name, tc := range map[string]struct {
		planning string
		run      *Run
		want     Condition
	}{
		"planned by the user": {"", nil, Condition{}},
		"not yet":             {protocol.PlanningAuto, nil, Condition{ConditionPlanned, Unknown, ReasonPlanning, "A model divides the work before the first task starts."}},
		"planned":             {protocol.PlanningAuto, &Run{Plan: &ModelPlan{Milestones: 2, Tasks: 5}}, Condition{ConditionPlanned, True, ReasonPlanProposed, "Milestones: 2. Tasks: 5. status.run.plan has the plan."}},
		"without a plan":      {protocol.PlanningAuto, &Run{Plan: &ModelPlan{Missing: "503"}}, Condition{ConditionPlanned, False, protocol.ReasonPlannerUnavailable, "There is no plan, and the work continues without one: 503."}},
		"to be approved":      {protocol.PlanningApprove, &Run{Plan: &ModelPlan{Milestones: 2, Tasks: 5, Hash: "abc"}}, Condition{ConditionPlanned, False, protocol.ReasonPlanApprovalRequired, "Milestones: 2. Tasks: 5. status.run.plan has the plan. No agent starts before a user approves it."}},
		"approved":            {protocol.PlanningApprove, &Run{Plan: &ModelPlan{Milestones: 2, Tasks: 5, Hash: "abc", Approved: true}}, Condition{ConditionPlanned, True, ReasonPlanApproved, "Milestones: 2. Tasks: 5. status.run.plan has the plan."}},
		"nothing to approve":  {protocol.PlanningApprove, &Run{Plan: &ModelPlan{Missing: "503"}}, Condition{ConditionPlanned, False, protocol.ReasonPlannerUnavailable, "There is no plan: 503."}},
	} {
		d := Next(Observed{Spec: Spec{Name: "login", Suspend: true, Planning: tc.planning}, Run: tc.run}, noon)
		if got := d.Memory.Condition(ConditionPlanned); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		told := slices.ContainsFunc(d.Events, func(e Event) bool { return e.Reason == protocol.ReasonPlannerUnavailable })
		if told != (tc.want.Reason == protocol.ReasonPlannerUnavailable) {
			t.Errorf("%s: events %+v", name, d.Events)
		}
	}
}
