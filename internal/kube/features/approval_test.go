// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
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
		e, err := supervisorpolicy.Effective(f, []v1alpha1.SupervisorPolicy{p}, supervisorpolicy.Place{SystemNamespace: "tidewaiter-system"})
		if err != nil {
			t.Fatal(err)
		}
		spec, orders := Spec(f, e), Orders(f, e, "p", nil)
		if spec.RequireApproval != tc.want || orders.Delivery.RequireApproval != tc.want || spec.ApprovalBy != tc.by {
			t.Errorf("policy %q, Feature %q: controller %t by %q, watchdog %t", tc.policy, tc.feature, spec.RequireApproval, spec.ApprovalBy, orders.Delivery.RequireApproval)
		}
	}
}

// TestABudgetIsTold to who decides about the life of a Feature.
func TestABudgetIsTold(t *testing.T) {
	f := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{Budget: &v1alpha1.Budget{MaxCost: "0.5"}}}
	e, err := supervisorpolicy.Effective(f, nil, supervisorpolicy.Place{SystemNamespace: "tidewaiter-system"})
	if err != nil || !Spec(f, e).Budget || Spec(f, policy.Effective{}).Budget {
		t.Errorf("%v: whether there is a budget is not told", err)
	}
}
