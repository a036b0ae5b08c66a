// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// supervisorCost is there once plans and reviews have had more than their share. It stays as it is while no watchdog says what models have used.
func (s situation) supervisorCost() []Condition {
	was := s.o.Memory.Condition(ConditionSupervisorCostInBounds)
	switch r := s.o.Run; {
	case r != nil && r.SupervisorCostWarning != "":
		return []Condition{{ConditionSupervisorCostInBounds, False, ReasonSupervisorCostHigh, sentence(r.SupervisorCostWarning)}}
	case was.Type == "":
		return nil
	case r == nil || !r.Used:
		return []Condition{was}
	}
	return []Condition{{ConditionSupervisorCostInBounds, True, ReasonSupervisorCostLow, "Plans and reviews have no more than the share of reviewers.costAlertPercent."}}
}
