// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// TestAnEmptyListOfPodsIsSaid: it takes a default away, and a list that is absent does not.
func TestAnEmptyListOfPodsIsSaid(t *testing.T) {
	none := ""
	f := login()
	f.Spec.Agent.Scheduling = nil
	agents := &v1alpha1.AgentRules{Scheduling: &v1alpha1.Scheduling{
		Tolerations: []v1alpha1.Toleration{{Key: "spot", Operator: v1alpha1.TolerateExists}}, PriorityClassName: new("low"),
		TopologySpreadConstraints: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: v1alpha1.DoNotSchedule, MaxSkew: 1}},
	}}
	policies := []v1alpha1.SupervisorPolicy{{Spec: v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Agents: agents}}}}
	policies[0].Namespace, policies[0].Name = f.Namespace, "team"
	e, err := Effective(f, policies, Place{})
	if err != nil || len(e.Pod.Tolerations) != 1 || e.Pod.PriorityClass != "low" || len(e.Pod.Spread) != 1 {
		t.Errorf("nothing said: %+v, %v", e.Pod, err)
	}
	f.Spec.Agent.Scheduling = &v1alpha1.Scheduling{Tolerations: []v1alpha1.Toleration{}, PriorityClassName: &none, TopologySpreadConstraints: []v1alpha1.TopologySpreadConstraint{}}
	e, err = Effective(f, policies, Place{})
	if diff := cmp.Diff([]int{0, 0, 0}, []int{len(e.Pod.Tolerations), len(e.Pod.Spread), len(e.Pod.PriorityClass)}); diff != "" || err != nil {
		t.Errorf("none said: %+v, %v", e.Pod, err)
	}
	if e.Origins["agents.scheduling.tolerations"] != "the Feature" {
		t.Errorf("origins %v", e.Origins)
	}
}
