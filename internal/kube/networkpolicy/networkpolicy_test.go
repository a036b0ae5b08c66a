// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
)

func TestNetworkPolicyIsReadWhole(t *testing.T) {
	udp := corev1.ProtocolUDP
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "dns"}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}},
		},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress: []networkingv1.NetworkPolicyEgressRule{{
			To: []networkingv1.NetworkPolicyPeer{
				{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "dns"}}},
				{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8"}}},
			},
			Ports: []networkingv1.NetworkPolicyPort{
				{Protocol: &udp, Port: ptr.To(intstr.FromInt32(53))}, {Port: ptr.To(intstr.FromInt32(1)), EndPort: ptr.To[int32](9)},
				{Port: ptr.To(intstr.FromString("https"))}, {Protocol: &udp},
			},
		}},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
	}}
	want := isolation.Policy{
		Name:       "dns",
		Pods:       isolation.Selector{Labels: map[string]string{"app": "web"}, Requirements: []isolation.Requirement{{Key: "zone", Operator: isolation.NotIn, Values: []string{"a"}}}},
		Directions: []isolation.Direction{isolation.Egress},
		Egress: []isolation.Rule{{
			Peers: []isolation.Peer{
				{Namespaces: &isolation.Selector{}, Pods: &isolation.Selector{Labels: map[string]string{"k8s-app": "dns"}}}, {Addresses: true},
			},
			Ports: []isolation.Port{
				{Protocol: "UDP", First: 53, Last: 53}, {Protocol: "TCP", First: 1, Last: 9},
				{Protocol: "TCP", First: 1, Last: 65535, Named: true}, {Protocol: "UDP", First: 1, Last: 65535},
			},
		}},
		Ingress: []isolation.Rule{{Peers: []isolation.Peer{{Pods: &isolation.Selector{}}}}},
	}
	if diff := cmp.Diff(want, Values(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func drawSelector(t *rapid.T, name string) metav1.LabelSelector {
	var s metav1.LabelSelector
	key, value := rapid.SampledFrom([]string{"app", "zone"}), rapid.SampledFrom([]string{"a", "b", ""})
	if rapid.Bool().Draw(t, name+" labels") {
		s.MatchLabels = map[string]string{key.Draw(t, name+" key"): value.Draw(t, name+" value")}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, name+" requirements") {
		r := metav1.LabelSelectorRequirement{
			Key: key.Draw(t, fmt.Sprintf("%s key %d", name, i)), Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
			}).Draw(t, name+" operator"),
		}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = rapid.SliceOfN(value, 1, 2).Draw(t, name+" values")
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

// TestSelectorsSelectAsTheAPISays compares with apimachinery's own.
func TestSelectorsSelectAsTheAPISays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSelector(t, "selector")
		pod := rapid.MapOfN(rapid.SampledFrom([]string{"app", "zone"}), rapid.SampledFrom([]string{"a", "b", ""}), 0, 2).Draw(t, "pod")
		theirs, err := metav1.LabelSelectorAsSelector(&s)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := labelSelector(s).Selects(pod), theirs.Matches(labels.Set(pod)); got != want {
			t.Fatalf("%+v selects %v: %t, the API says %t", s, pod, got, want)
		}
	})
}

// TestReducedPoliciesOpenTheSame: what the manager keeps in memory leads to the same decisions.
func TestReducedPoliciesOpenTheSame(t *testing.T) {
	base := &isolation.Policy{Egress: []isolation.Rule{{
		Peers: []isolation.Peer{{Namespaces: &isolation.Selector{Labels: map[string]string{"app": "a"}}}}, Ports: []isolation.Port{{Protocol: "TCP", First: 1, Last: 9}},
	}}}
	rapid.Check(t, func(t *rapid.T) {
		p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", ResourceVersion: "7", Annotations: map[string]string{"a": "b"}}}
		p.Spec.PodSelector = drawSelector(t, "pods")
		p.Spec.PolicyTypes = rapid.SampledFrom([][]networkingv1.PolicyType{nil, {"Egress"}, {"Ingress"}, {"Ingress", "Egress"}}).Draw(t, "types")
		for range rapid.IntRange(0, 2).Draw(t, "egress") {
			peer := networkingv1.NetworkPolicyPeer{NamespaceSelector: ptr.To(drawSelector(t, "namespaces"))}
			p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{
				To:    []networkingv1.NetworkPolicyPeer{peer},
				Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(rapid.Int32Range(1, 12).Draw(t, "port")))}},
			})
		}
		for range rapid.IntRange(0, 1).Draw(t, "ingress") {
			p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
		}
		pod := rapid.MapOfN(rapid.SampledFrom([]string{"app", "zone"}), rapid.SampledFrom([]string{"a", "b", ""}), 0, 2).Draw(t, "pod")
		reduced := Reduced(p, base)
		found := func(p *networkingv1.NetworkPolicy) []isolation.Opening {
			return isolation.Find([]isolation.Policy{Values(p)}, base, pod)
		}
		if diff := cmp.Diff(found(p), found(reduced)); diff != "" {
			t.Fatalf("(-whole +reduced):\n%s", diff)
		}
		if diff := cmp.Diff(reduced, Reduced(reduced, base)); diff != "" {
			t.Fatalf("reduced again (-once +twice):\n%s", diff)
		}
	})
}

// TestAHugePolicyIsKeptSmall: what an editor writes is bounded in memory, and what is not kept is taken to open.
func TestAHugePolicyIsKeptSmall(t *testing.T) {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: "huge", Labels: map[string]string{}, Annotations: map[string]string{"a": strings.Repeat("x", 1<<18)}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}}
	for i := range 10_000 {
		p.Labels[fmt.Sprintf("label-%d", i)] = "x"
		p.Spec.PodSelector.MatchExpressions = append(p.Spec.PodSelector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: fmt.Sprintf("key-%d", i), Operator: metav1.LabelSelectorOpExists,
		})
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
	}
	reduced := Reduced(p, &isolation.Policy{})
	if size := reduced.Size(); size > 2*maxSelector {
		t.Errorf("%d bytes are kept of %d", size, p.Size())
	}
	if found := isolation.Find([]isolation.Policy{Values(reduced)}, &isolation.Policy{}, map[string]string{"any": "pod"}); len(found) != 1 {
		t.Errorf("a policy whose selector is not kept opens nothing: %v", found)
	}
	p.Spec.Egress = nil
	if reduced = Reduced(p, &isolation.Policy{}); reduced.Size() > 100 {
		t.Errorf("%d bytes are kept of a policy that opens nothing", reduced.Size())
	}
}
