// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

// TestOnePolicySuspends: the platform's stop holds in a project whose own policy has the higher priority, and reaches orders and decisions. So does one
// whose rules cannot be read. A policy of another project, or for other Features, stops nothing here.
func TestOnePolicySuspends(t *testing.T) {
	policies := []v1alpha1.SupervisorPolicy{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "tidewaiter-system", Name: "stop"}, Spec: v1alpha1.SupervisorPolicySpec{Suspend: true}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "go-on"}, Spec: v1alpha1.SupervisorPolicySpec{Priority: 1000}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "other"}, Spec: v1alpha1.SupervisorPolicySpec{Suspend: true}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mobile"}, Spec: v1alpha1.SupervisorPolicySpec{Suspend: true,
			Selector: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"policy.tidewaiter.dev/team": "mobile"}}}},
	}
	f, at := full(), supervisorpolicy.Place{SystemNamespace: "tidewaiter-system"}
	for _, broken := range []bool{false, true} {
		if broken {
			policies[1].Spec.Defaults = &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{"[/"}}}
		}
		e, err := supervisorpolicy.Effective(f, policies, at)
		if (err != nil) != broken || !slices.Equal(e.SuspendedBy, []string{"tidewaiter-system/stop"}) {
			t.Errorf("suspended by %q, %v", e.SuspendedBy, err)
		}
		if s := Spec(f, e); s.Suspend || s.SuspendedBy != "tidewaiter-system/stop" {
			t.Errorf("spec %t, %q", s.Suspend, s.SuspendedBy)
		}
		if !broken && !Orders(f, e, "", nil).Suspend {
			t.Error("the watchdog is not told")
		}
	}
	policies[0].Spec.Suspend, policies[1].Spec.Defaults = false, nil
	e, err := supervisorpolicy.Effective(f, policies, at)
	if s := Spec(f, e); err != nil || s.Suspend || s.SuspendedBy != "" || Orders(f, e, "", nil).Suspend {
		t.Errorf("%v, still suspended: %+v", err, s)
	}
}
