// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package networkpolicy reads NetworkPolicies as values of the core, and keeps the parts on which core decides.
package networkpolicy

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
)

const (
	// maxSelector bounds what is kept of the selector of a network policy, in bytes of keys and values. A longer one is taken
	// to select everything: a person who can write network policies must not be able to fill the manager's memory. Selectors that
	// people write have some hundred bytes.
	maxSelector = 4096
	// lastPort that there is.
	lastPort = 65535
)

// Values are a NetworkPolicy as plain values.
func Values(p *networkingv1.NetworkPolicy) isolation.Policy {
	out := isolation.Policy{Name: p.Name, Pods: labelSelector(p.Spec.PodSelector)}
	for _, t := range p.Spec.PolicyTypes {
		out.Directions = append(out.Directions, isolation.Direction(t))
	}
	for _, r := range p.Spec.Egress {
		out.Egress = append(out.Egress, isolation.Rule{Peers: networkPeers(r.To), Ports: networkPorts(r.Ports)})
	}
	for _, r := range p.Spec.Ingress {
		out.Ingress = append(out.Ingress, isolation.Rule{Peers: networkPeers(r.From), Ports: networkPorts(r.Ports)})
	}
	return out
}

// Reduced keeps of a NetworkPolicy which pods it opens in which directions to more than base does. The result
// is small, and opens the same pods in the same directions; reducing it again changes nothing.
func Reduced(p *networkingv1.NetworkPolicy, base *isolation.Policy) *networkingv1.NetworkPolicy {
	out := &networkingv1.NetworkPolicy{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Generation: p.Generation,
		CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
	}}
	full := Values(p)
	for _, d := range full.Opens(base) {
		out.Spec.PolicyTypes = append(out.Spec.PolicyTypes, networkingv1.PolicyType(d))
		if d == isolation.Egress {
			out.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
		} else {
			out.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
		}
	}
	if len(out.Spec.PolicyTypes) > 0 && selectorSize(p.Spec.PodSelector) <= maxSelector {
		out.Spec.PodSelector = p.Spec.PodSelector
	}
	return out
}

func selectorSize(s metav1.LabelSelector) int {
	n := 0
	for k, v := range s.MatchLabels {
		n += len(k) + len(v)
	}
	for _, r := range s.MatchExpressions {
		n += len(r.Key) + len(r.Operator)
		for _, v := range r.Values {
			n += len(v)
		}
	}
	return n
}

func labelSelector(s metav1.LabelSelector) isolation.Selector {
	out := isolation.Selector{Labels: s.MatchLabels}
	for _, r := range s.MatchExpressions {
		out.Requirements = append(out.Requirements, isolation.Requirement{Key: r.Key, Operator: isolation.Operator(r.Operator), Values: r.Values})
	}
	return out
}

func networkPeers(list []networkingv1.NetworkPolicyPeer) []isolation.Peer {
	var peers []isolation.Peer
	for _, p := range list {
		peer := isolation.Peer{Addresses: p.IPBlock != nil}
		if p.NamespaceSelector != nil {
			peer.Namespaces = ptr.To(labelSelector(*p.NamespaceSelector))
		}
		if p.PodSelector != nil {
			peer.Pods = ptr.To(labelSelector(*p.PodSelector))
		}
		peers = append(peers, peer)
	}
	return peers
}

func networkPorts(list []networkingv1.NetworkPolicyPort) []isolation.Port {
	var ports []isolation.Port
	for _, p := range list {
		port := isolation.Port{Protocol: string(cmp.Or(ptr.Deref(p.Protocol, ""), corev1.ProtocolTCP)), First: 1, Last: lastPort}
		switch {
		case p.Port == nil:
		case p.Port.Type == intstr.String:
			port.Named = true
		default:
			port.First = p.Port.IntVal
			port.Last = ptr.Deref(p.EndPort, port.First)
		}
		ports = append(ports, port)
	}
	return ports
}
