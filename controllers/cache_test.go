// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestCachedNetworkPolicies: those of Features stay whole, whatever the value of their label, since they are compared with
// what they should be; of others it is kept what they open.
func TestCachedNetworkPolicies(t *testing.T) {
	byObject, err := CacheByObject(kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for o, options := range byObject {
		if _, ok := o.(*networkingv1.NetworkPolicy); !ok {
			continue
		}
		keep := func(labels map[string]string, egress ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
			kept, err := options.Transform(&networkingv1.NetworkPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: labels, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
				Spec: networkingv1.NetworkPolicySpec{
					PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
					PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: egress,
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			policy, ok := kept.(*networkingv1.NetworkPolicy)
			if !ok || len(policy.ManagedFields) > 0 {
				t.Fatalf("kept: %+v", kept)
			}
			return policy
		}
		udp := networkingv1.NetworkPolicyEgressRule{Ports: make([]networkingv1.NetworkPolicyPort, 3)}
		for _, value := range []string{"login", ""} {
			if p := keep(map[string]string{v1alpha1.LabelFeature: value}, udp); len(p.Labels) != 1 || len(p.Spec.Egress) != 1 || len(p.Spec.Egress[0].Ports) != 3 {
				t.Errorf("of ours: %+v", p)
			}
		}
		if p := keep(map[string]string{"team": "web"}, udp, udp); len(p.Labels) > 0 || len(p.Spec.Egress) != 1 || len(p.Spec.Egress[0].Ports) > 0 || p.Spec.PodSelector.MatchLabels["app"] != "web" {
			t.Errorf("of one that opens: %+v", p)
		}
		if p := keep(nil); len(p.Spec.Egress)+len(p.Spec.PodSelector.MatchLabels) > 0 {
			t.Errorf("of one that denies: %+v", p)
		}
	}
}

// TestCachedPrompts: a prompt that is done with takes no memory.
func TestCachedPrompts(t *testing.T) {
	byObject, err := CacheByObject(kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for o, options := range byObject {
		if _, ok := o.(*v1alpha1.Feature); !ok {
			continue
		}
		for phase, want := range map[v1alpha1.Phase]string{"": "Work.", v1alpha1.PhaseFailed: "Work.", v1alpha1.PhaseReadyToMerge: "Work.", v1alpha1.PhaseDelivered: ""} {
			kept, err := options.Transform(&v1alpha1.Feature{
				ObjectMeta: metav1.ObjectMeta{Name: "login", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
				Spec:       v1alpha1.FeatureSpec{Prompt: "Work.", Priority: 3}, Status: v1alpha1.FeatureStatus{Phase: phase},
			})
			if f, ok := kept.(*v1alpha1.Feature); err != nil || !ok || f.Spec.Prompt != want || f.Spec.Priority != 3 || len(f.ManagedFields) > 0 {
				t.Errorf("%s: kept: %+v, %v", phase, kept, err)
			}
			seen++
		}
	}
	if seen == 0 {
		t.Error("Features are cached as a whole")
	}
}

// TestCachedPods: what the cache keeps of a pod tells the same of it as the pod itself, also which nodes it asks for.
func TestCachedPods(t *testing.T) {
	byObject, err := CacheByObject(kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "twf-login-1-abc", Labels: map[string]string{v1alpha1.LabelFeature: "login"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec:       corev1.PodSpec{NodeName: "n", NodeSelector: map[string]string{"pool": "agents"}, Containers: make([]corev1.Container, 3)},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available.",
		}}},
	}
	want := observe.Pods([]corev1.Pod{pod})
	for o, options := range byObject {
		if _, ok := o.(*corev1.Pod); !ok {
			continue
		}
		kept, err := options.Transform(pod.DeepCopy())
		is, ok := kept.(*corev1.Pod)
		if err != nil || !ok || len(is.ManagedFields)+len(is.Spec.Containers) > 0 {
			t.Fatalf("kept: %+v, %v", kept, err)
		}
		if diff := cmp.Diff(want, observe.Pods([]corev1.Pod{*is})); diff != "" {
			t.Errorf("(-pod +cached):\n%s", diff)
		}
		return
	}
	t.Error("pods are cached as a whole")
}
