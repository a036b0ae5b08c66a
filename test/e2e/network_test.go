// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// TestAnOpenNetworkEndsTheAgent: somebody of the project opens the network of all pods. The agent is ended in order, nothing of
// its work is lost, and it goes on once the network is closed.
func TestAnOpenNetworkEndsTheAgent(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("login", "echo form >> web/login.html; until [ -e \"$HOME/end\" ]; do sleep 0.2; done", nil)
	p.phase("login", v1alpha1.PhaseRunning, v1alpha1.ReasonRunning)
	p.condition("login", v1alpha1.ConditionIsolated, v1alpha1.ReasonIsolated)
	opens := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "allow-all"}, Spec: networkingv1.NetworkPolicySpec{
		Egress: []networkingv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}}
	p.must(k8s.Create(p.ctx, opens), "open the network")
	p.phase("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNetworkOpened)
	if m := p.condition("login", v1alpha1.ConditionIsolated, v1alpha1.ReasonNetworkOpened); !strings.Contains(m, "NetworkPolicy allow-all allows egress") {
		t.Errorf("the message is %q", m)
	}
	f := p.until("login", "the end of the attempt", func(f *v1alpha1.Feature) bool { return f.Status.Job != nil && f.Status.Job.EndedAt != nil })
	if f.Status.Run == nil || f.Status.Run.Final == nil || f.Status.Run.Final.Outcome != "Stopped" || f.Status.Lost+f.Status.Failures > 0 {
		t.Errorf("the attempt did not end in order: %+v", f.Status.Run)
	}
	p.must(k8s.Delete(p.ctx, opens), "close the network")
	p.until("login", "the next attempt", func(f *v1alpha1.Feature) bool {
		return f.Status.Attempt == 2 && f.Status.Phase == v1alpha1.PhaseRunning
	})
	p.signal("login", "end")
	f = p.phase("login", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if !strings.Contains(p.history(f.Status.Branch), "form") {
		t.Error("the branch lacks the agent's change")
	}
}
