// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

// TestOrdersTellOfAStop: a policy that begins or ends to suspend changes the tag of the orders, though neither the Feature nor the policy's hash
// changes. Otherwise a watchdog that waits is told nothing.
func TestOrdersTellOfAStop(t *testing.T) {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}}
	tag := func(suspend bool) string {
		p := v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "stop"}, Spec: v1alpha1.SupervisorPolicySpec{Suspend: suspend}}
		e, err := supervisorpolicy.Effective(f, []v1alpha1.SupervisorPolicy{p}, supervisorpolicy.Place{SystemNamespace: "system"})
		if err != nil {
			t.Fatal(err)
		}
		tag, err := tagOf(sight{feature: f, orders: features.Orders(f, e, "", nil)}, promptText{})
		if err != nil {
			t.Fatal(err)
		}
		return tag
	}
	if tag(true) == tag(false) {
		t.Error("orders that suspend have the tag of those that do not")
	}
}
