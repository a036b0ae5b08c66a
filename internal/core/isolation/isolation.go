// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolation decides whether a network policy opens the network of pods to more than it is meant to be open to.
// Network policies add up: what one of them allows, no other takes back.
package isolation

import (
	"slices"
	"strings"
)

// Policy is a network policy as plain values.
type Policy struct {
	// Name of the policy.
	Name string
	// Pods that it selects.
	Pods Selector
	// Directions of traffic that the policy restricts. An empty list means Ingress, and also Egress if the policy has rules for it.
	Directions []Direction
	// Ingress and Egress are what it allows.
	Ingress, Egress []Rule
}

// Direction of connections.
type Direction string

// Directions as seen from the selected pods.
const (
	Ingress Direction = "Ingress"
	Egress  Direction = "Egress"
)

// Rule allows connections with any of its peers on any of its ports. Without peers it allows all peers, without ports all
// ports.
type Rule struct {
	Peers []Peer
	Ports []Port
}

// Peer is a set of peers.
type Peer struct {
	// Addresses is true for a range of addresses: the policy allows every host in it.
	Addresses bool
	// Namespaces of the pods; nil for the policy's own.
	Namespaces *Selector
	// Pods in these namespaces; nil for all.
	Pods *Selector
}

// Port is a range of ports.
type Port struct {
	Protocol string
	// First and Last of the range, 1 to 65535.
	First, Last int32
	// Named is true for a port that has only a name: which number it has is for the peer to say.
	Named bool
}

// Opening is a policy that opens the network of pods.
type Opening struct {
	// Policy is its name.
	Policy string
	// Directions that it opens, Egress first.
	Directions []Direction
}

// Find returns the policies that select a pod and open its network to more than base does, by name. pods are the labels of
// each. The cost is linear in the size of the policies, for given pods and a given base.
func Find(policies []Policy, base *Policy, pods ...map[string]string) []Opening {
	var found []Opening
	for i := range policies {
		p := &policies[i]
		if !slices.ContainsFunc(pods, p.Pods.Selects) {
			continue
		}
		if open := p.Opens(base); len(open) > 0 {
			found = append(found, Opening{Policy: p.Name, Directions: open})
		}
	}
	slices.SortFunc(found, func(a, b Opening) int { return strings.Compare(a.Policy, b.Policy) })
	return found
}

// Opens says in which directions a policy allows what base does not. It may name a direction that several rules of base together already
// allow; it never omits an open one.
func (p *Policy) Opens(base *Policy) []Direction {
	var open []Direction
	for _, d := range []Direction{Egress, Ingress} {
		if p.concerns(d) && slices.ContainsFunc(p.rules(d), func(r Rule) bool { return !within(r, base.rules(d)) }) {
			open = append(open, d)
		}
	}
	return open
}

// concerns follows the defaults of the API (networking.k8s.io/v1, NetworkPolicySpec.policyTypes).
func (p *Policy) concerns(d Direction) bool {
	if len(p.Directions) == 0 {
		return d == Ingress || len(p.Egress) > 0
	}
	return slices.Contains(p.Directions, d)
}

func (p *Policy) rules(d Direction) []Rule {
	if d == Egress {
		return p.Egress
	}
	return p.Ingress
}

// within reports whether one rule of a list allows all that a rule allows.
func within(r Rule, list []Rule) bool {
	if len(r.Peers) == 0 || len(r.Ports) == 0 {
		return false // Everything: the rules of Tidewaiter name both.
	}
	return slices.ContainsFunc(list, func(wide Rule) bool { return wide.holds(r) })
}

// holds reports whether a rule allows every peer of another on every port of it. Each peer and each port is looked at once,
// so that the cost does not grow with their product.
func (r Rule) holds(other Rule) bool {
	peer := func(p Peer) bool {
		return slices.ContainsFunc(r.Peers, func(wide Peer) bool {
			return !wide.Addresses && !p.Addresses && narrows(p.Namespaces, wide.Namespaces) &&
				(wide.Pods == nil || p.Pods != nil && p.Pods.narrows(*wide.Pods))
		})
	}
	port := func(p Port) bool {
		return slices.ContainsFunc(r.Ports, func(wide Port) bool {
			return !wide.Named && !p.Named && wide.Protocol == p.Protocol && wide.First <= p.First && p.Last <= wide.Last
		})
	}
	return all(other.Peers, peer) && all(other.Ports, port)
}

func all[T any](list []T, so func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !so(x) })
}

// narrows compares namespaces: a policy without a selector means its own, which no selector is sure to hold.
func narrows(narrow, wide *Selector) bool {
	if narrow == nil || wide == nil {
		return narrow == nil && wide == nil
	}
	return narrow.narrows(*wide)
}
