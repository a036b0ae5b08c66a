// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSupervisorCostInBounds: the condition begins with a warning, tells of it once, and stays as it is while nobody says what models have used.
func TestSupervisorCostInBounds(t *testing.T) {
	high := Condition{ConditionSupervisorCostInBounds, False, ReasonSupervisorCostHigh, "They have 14 %."}
	low := Condition{ConditionSupervisorCostInBounds, True, ReasonSupervisorCostLow, "Plans and reviews have no more than the share of reviewers.costAlertPercent."}
	for name, c := range map[string]struct {
		was  Condition
		run  *Run
		want Condition
		told bool
	}{
		"nothing":     {Condition{}, &Run{Used: true}, Condition{}, false},
		"it begins":   {Condition{}, &Run{Used: true, SupervisorCostWarning: "They have 14 %"}, high, true},
		"it lasts":    {high, &Run{Used: true, SupervisorCostWarning: "They have 14 %"}, high, false},
		"it is over":  {high, &Run{Used: true}, low, false},
		"no word yet": {high, &Run{}, high, false},
		"no run":      {high, nil, high, false},
	} {
		memory := Memory{}
		if c.was.Type != "" {
			memory.Conditions = []Condition{c.was}
		}
		d := Next(Observed{Spec: Spec{Name: "login", Suspend: true}, Memory: memory, Run: c.run}, noon)
		if diff := cmp.Diff(c.want, d.Memory.Condition(ConditionSupervisorCostInBounds)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if told := slices.ContainsFunc(d.Events, func(e Event) bool { return e.Warning && e.Reason == ReasonSupervisorCostHigh }); told != c.told {
			t.Errorf("%s: events %+v", name, d.Events)
		}
		if slices.ContainsFunc(d.Events, func(e Event) bool { return e.Reason == ReasonSupervisorCostLow }) {
			t.Errorf("%s: events %+v", name, d.Events)
		}
	}
}
