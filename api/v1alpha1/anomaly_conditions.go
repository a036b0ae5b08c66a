// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AnomalyConditions are the conditions of an agent that is stuck or in trouble.
func AnomalyConditions() []string {
	return []string{ConditionAgentStalled, ConditionAgentLooping, ConditionContextPressure, ConditionCascadeFailure, ConditionPaceEscalated}
}
