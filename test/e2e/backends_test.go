// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// TestBackendComesLater: a Feature whose policy names a backend that the gateways do not have waits, starts by itself when an administrator
// adds it, and delivers in its first attempt without a retry.
func TestBackendComesLater(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	later := provider.Backend + "-later"
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "later"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Models: []v1alpha1.ModelRef{{Role: "primary", Backend: later, Model: cluster.Model}}},
	}}), "create the policy")
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: "codex", Image: agentImage(t, "codex")}
		s.Prompt = scripted("Write a page.", `turns:
- text: I write the page.
  run: mkdir -p web && echo '<h1>Late</h1>' > web/late.html
- text: The page is written.`)
	})
	if m := p.condition("page", v1alpha1.ConditionAccepted, v1alpha1.ReasonModelNotAvailable); !strings.Contains(m, later) {
		t.Errorf("message %q", m)
	}
	began := time.Now()
	p.must(provider.Add(p.ctx, later), "add the backend")
	t.Cleanup(func() {
		if err := provider.Remove(later); err != nil {
			t.Errorf("remove the backend: %v", err)
		}
	})
	p.until("page", "attempt 1", func(f *v1alpha1.Feature) bool { return f.Status.Attempt == 1 })
	t.Logf("attempt 1 began %s after the backend was added", time.Since(began).Round(time.Millisecond))
	f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if f.Status.Attempt != 1 || f.Status.Failures != 0 || f.Status.Unserved != nil {
		t.Errorf("attempt %d, failures %d, unserved %+v", f.Status.Attempt, f.Status.Failures, f.Status.Unserved)
	}
}
