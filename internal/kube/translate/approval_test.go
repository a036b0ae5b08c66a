// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// TestAnApprovalIsRequiredByPolicyOrFeature: neither takes back what the other one asks for.
func TestAnApprovalIsRequiredByPolicyOrFeature(t *testing.T) {
	for _, tc := range []struct {
		policy, feature v1alpha1.Approval
		want            bool
		by              string
	}{
		{"", "", false, ""},
		{v1alpha1.ApprovalNone, v1alpha1.ApprovalNone, false, ""},
		{v1alpha1.ApprovalNone, v1alpha1.ApprovalRequired, true, ""},
		{v1alpha1.ApprovalRequired, v1alpha1.ApprovalNone, true, "defaults of shop/careful"},
		{v1alpha1.ApprovalRequired, "", true, "defaults of shop/careful"},
	} {
		f := full()
		f.Spec.Delivery = &v1alpha1.Delivery{Approval: tc.feature}
		p := v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "careful"}, Spec: v1alpha1.SupervisorPolicySpec{
			Defaults: &v1alpha1.Rules{Delivery: &v1alpha1.DeliveryRules{Approval: tc.policy}},
		}}
		e, err := Effective(f, []v1alpha1.SupervisorPolicy{p}, Place{SystemNamespace: "tidewaiter-system"})
		if err != nil {
			t.Fatal(err)
		}
		spec, orders := Spec(f, e), Orders(f, e, "p", nil)
		if spec.RequireApproval != tc.want || orders.Delivery.RequireApproval != tc.want || spec.ApprovalBy != tc.by {
			t.Errorf("policy %q, Feature %q: controller %t by %q, watchdog %t", tc.policy, tc.feature, spec.RequireApproval, spec.ApprovalBy, orders.Delivery.RequireApproval)
		}
	}
}

// TestAllowedRolesReachTheCore: of every policy that applies.
func TestAllowedRolesReachTheCore(t *testing.T) {
	f := full()
	list := func(namespace string, roles ...string) v1alpha1.SupervisorPolicy {
		return v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "roles"}, Spec: v1alpha1.SupervisorPolicySpec{
			Overrides: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{AllowedRoles: roles}},
		}}
	}
	policies := []v1alpha1.SupervisorPolicy{list("tidewaiter-system", "implementor", "dba"), list("shop", "dba", "writer"), list("bank", "teller")}
	e, err := Effective(f, policies, Place{SystemNamespace: "tidewaiter-system"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.AllowedRoles, []string{"dba"}) {
		t.Errorf("allowed are %v", e.AllowedRoles)
	}
}
