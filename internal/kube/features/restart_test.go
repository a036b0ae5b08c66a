// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"cmp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

// TestAskRestart: a person is asked under the restart mode Ask alone, and the mode that policies set reaches the watchdog.
func TestAskRestart(t *testing.T) {
	for mode, asks := range map[string]bool{"": false, "Resume": false, "Replay": false, "Ask": true} {
		f := full()
		e, err := supervisorpolicy.Effective(f, []v1alpha1.SupervisorPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "restart"}, Spec: v1alpha1.SupervisorPolicySpec{
			Defaults: &v1alpha1.Rules{Supervision: &v1alpha1.SupervisionRules{RestartMode: mode}},
		}}}, supervisorpolicy.Place{SystemNamespace: "tidewaiter-system"})
		if err != nil {
			t.Fatal(err)
		}
		if got := Spec(f, e).AskRestart; got != asks {
			t.Errorf("%q asks: %v", mode, got)
		}
		if got := Orders(f, e, "", nil).Policy.Supervision.RestartMode; got != cmp.Or(policy.RestartMode(mode), policy.RestartResume) {
			t.Errorf("%q is ordered as %q", mode, got)
		}
	}
}
