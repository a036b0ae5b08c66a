// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestARoleMustBeAllowed: the refusal names role, policy and path, and ends with the policy.
func TestARoleMustBeAllowed(t *testing.T) {
	r := newHarness(t)
	p := r.policy("roles", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{AllowedRoles: []string{"reviewer", "implementor"}}}})
	r.feature("wrong", func(f *v1alpha1.Feature) { f.Spec.Agent.Role = "dba" })
	r.feature("without", nil)
	for name, role := range map[string]string{"wrong": `"dba"`, "without": `""`} {
		r.settle(name)
		r.want(name, v1alpha1.PhaseBlocked, v1alpha1.ReasonRoleNotAllowed)
		message := r.wantCondition(name, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonRoleNotAllowed)
		want := "spec.agent.role is " + role + ", and the policy (agents.allowedRoles in defaults of " + r.project + "/roles) allows implementor, reviewer."
		if !strings.HasPrefix(message, want) {
			t.Errorf("%s: want %q, got %q", name, want, message)
		}
	}
	r.wantJobs()

	p.Spec.Defaults.Agents.AllowedRoles = []string{"dba", "implementor"}
	r.must(r.user.Update(r.Context(), p), "change the policy")
	r.settle("wrong")
	r.want("wrong", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.wantJobs("twf-wrong-1")
}

// TestAPolicyRequiresAnApproval: whatever the Feature says, and its conditions name the policy.
func TestAPolicyRequiresAnApproval(t *testing.T) {
	r := newHarness(t)
	r.policy("regulated", v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{Delivery: &v1alpha1.DeliveryRules{Approval: v1alpha1.ApprovalRequired}}})
	r.feature("login", func(f *v1alpha1.Feature) { f.Spec.Delivery = &v1alpha1.Delivery{Approval: v1alpha1.ApprovalNone} })
	r.feature("passing", func(f *v1alpha1.Feature) { f.Spec.Workspace = &v1alpha1.Workspace{Ephemeral: true} })
	by := "delivery.approval in overrides of " + r.project + "/regulated"

	r.settle("passing")
	r.want("passing", v1alpha1.PhaseBlocked, v1alpha1.ReasonVolumesRequired)
	if m := r.wantCondition("passing", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonVolumesRequired); !strings.Contains(m, by) {
		t.Errorf("the policy is not named: %s", m)
	}

	r.settle("login")
	if m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted); !strings.Contains(m, by) {
		t.Errorf("the policy is not named: %s", m)
	}
	r.final("login", protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired, "")
	r.settle("login")
	r.want("login", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonApprovalRequired)
	if m := r.wantCondition("login", v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, v1alpha1.ReasonApprovalRequired); !strings.Contains(m, by) {
		t.Errorf("the policy is not named: %s", m)
	}
	r.change("login", func(s *v1alpha1.FeatureSpec) { s.Delivery.ApprovedCommit = head })
	r.settle("login")
	r.want("login", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonDelivering)
}
