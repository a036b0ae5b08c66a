// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// labelled selects by labels alone.
func labelled(pairs ...string) *Selector {
	s := &Selector{Labels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.Labels[pairs[i]] = pairs[i+1]
	}
	return s
}

func tcp(first, last int32) []Port { return []Port{{Protocol: "TCP", First: first, Last: last}} }

// own is like the policy that Tidewaiter makes.
func own() *Policy {
	return &Policy{Name: "own", Directions: []Direction{Ingress, Egress}, Egress: []Rule{
		{Peers: []Peer{{Namespaces: labelled("name", "system"), Pods: labelled("app", "manager")}}, Ports: tcp(9444, 9444)},
		{Peers: []Peer{{Namespaces: labelled("name", "system"), Pods: labelled("app", "gateway")}}, Ports: tcp(8443, 8444)},
	}}
}

func TestOpens(t *testing.T) {
	anyone := []Rule{{}}
	gateway := Peer{Namespaces: labelled("name", "system"), Pods: labelled("app", "gateway")}
	to := func(ports []Port, peers ...Peer) Policy {
		return Policy{Directions: []Direction{Egress}, Egress: []Rule{{Peers: peers, Ports: ports}}}
	}
	out, in, both := []Direction{Egress}, []Direction{Ingress}, []Direction{Egress, Ingress}
	for name, tc := range map[string]struct {
		policy Policy
		want   []Direction
	}{
		"nothing is allowed":                       {Policy{Directions: []Direction{Ingress, Egress}}, nil},
		"without directions it is about ingress":   {Policy{}, nil},
		"ingress from anywhere, without direction": {Policy{Ingress: anyone}, in},
		"egress without direction":                 {Policy{Egress: anyone}, out},
		"both without direction":                   {Policy{Egress: anyone, Ingress: anyone}, both},
		"rules of a direction that it is not about": {
			Policy{Directions: []Direction{Egress}, Ingress: anyone}, nil,
		},
		"egress of a policy about ingress":   {Policy{Directions: []Direction{Ingress}, Egress: anyone}, nil},
		"an empty rule allows everything":    {to(nil), out},
		"all ports of a peer":                {to(nil, gateway), out},
		"all peers on a port":                {to(tcp(8443, 8443)), out},
		"what our own policy allows":         {to(tcp(8443, 8443), gateway), nil},
		"a whole range that our own allows":  {to(tcp(8443, 8444), gateway), nil},
		"one port more":                      {to(tcp(8443, 8445), gateway), out},
		"another port of a peer of ours":     {to(tcp(9444, 9444), gateway), out},
		"another protocol":                   {to([]Port{{Protocol: "UDP", First: 8443, Last: 8443}}, gateway), out},
		"a port by its name":                 {to([]Port{{Protocol: "TCP", Named: true}}, gateway), out},
		"one good peer and one that is not":  {to(tcp(8443, 8443), gateway, Peer{Pods: labelled("app", "gateway")}), out},
		"pods of the own namespace":          {to(tcp(8443, 8443), Peer{Pods: labelled("app", "gateway")}), out},
		"all pods of the system":             {to(tcp(8443, 8443), Peer{Namespaces: labelled("name", "system")}), out},
		"the same pods in any namespace":     {to(tcp(8443, 8443), Peer{Namespaces: labelled(), Pods: labelled("app", "gateway")}), out},
		"fewer pods than our own":            {to(tcp(8443, 8443), Peer{Namespaces: labelled("name", "system"), Pods: labelled("app", "gateway", "zone", "a")}), nil},
		"a range of addresses":               {to(tcp(8443, 8443), Peer{Addresses: true}), out},
		"a second rule opens":                {Policy{Egress: []Rule{{Peers: []Peer{gateway}, Ports: tcp(8443, 8443)}, {}}}, out},
		"ingress from what egress may go to": {Policy{Ingress: []Rule{{Peers: []Peer{gateway}, Ports: tcp(8443, 8443)}}}, in},
		"a requirement of theirs is not a label": {to(tcp(8443, 8443), Peer{Namespaces: labelled("name", "system"), Pods: &Selector{
			Requirements: []Requirement{{"app", In, []string{"gateway"}}},
		}}), out},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.policy.Opens(own())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelects(t *testing.T) {
	pod := map[string]string{"feature": "login", "run": "agent"}
	for name, tc := range map[string]struct {
		selector Selector
		want     bool
	}{
		"an empty selector selects all":         {Selector{}, true},
		"a label":                               {*labelled("feature", "login"), true},
		"another value":                         {*labelled("feature", "logout"), false},
		"a label that is not there":             {*labelled("app", "web"), false},
		"an empty value is not an absent label": {*labelled("app", ""), false},
		"one of several":                        {Selector{Requirements: []Requirement{{"run", In, []string{"seal", "agent"}}}}, true},
		"none of several":                       {Selector{Requirements: []Requirement{{"run", In, []string{"seal"}}}}, false},
		"not one of several":                    {Selector{Requirements: []Requirement{{"run", NotIn, []string{"seal"}}}}, true},
		"what is absent is not in":              {Selector{Requirements: []Requirement{{"app", NotIn, []string{"web"}}}}, true},
		"excluded by its value":                 {Selector{Requirements: []Requirement{{"run", NotIn, []string{"agent"}}}}, false},
		"there":                                 {Selector{Requirements: []Requirement{{Key: "feature", Operator: Exists}}}, true},
		"not there":                             {Selector{Requirements: []Requirement{{Key: "app", Operator: Exists}}}, false},
		"left out as the page says":             {Selector{Requirements: []Requirement{{Key: "feature", Operator: DoesNotExist}}}, false},
		"all must hold":                         {Selector{Labels: pod, Requirements: []Requirement{{Key: "app", Operator: Exists}}}, false},
		"what cannot be read selects":           {Selector{Requirements: []Requirement{{"run", "Like", []string{"x"}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.selector.Selects(pod); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	first, second := map[string]string{"feature": "login", "attempt": "1"}, map[string]string{"feature": "login", "attempt": "2"}
	policies := []Policy{
		{Name: "z", Pods: *labelled("attempt", "2"), Egress: []Rule{{}}},
		{Name: "b", Pods: *labelled("app", "web"), Egress: []Rule{{}}},
		{Name: "a", Egress: []Rule{{}}, Ingress: []Rule{{}}},
		{Name: "c", Directions: []Direction{Egress}},
	}
	want := []Opening{{"a", []Direction{Egress, Ingress}}, {"z", []Direction{Egress}}}
	if diff := cmp.Diff(want, Find(policies, own(), first, second)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], Find(policies, own(), first)); diff != "" {
		t.Errorf("of the first pod alone (-want +got):\n%s", diff)
	}
}

// A small world, in which it can be tried what a policy allows.
type endpoint struct {
	namespace map[string]string
	pod       map[string]string
	same      bool
	port      Port
}

func world() []endpoint {
	var all []endpoint
	for _, namespace := range []string{"system", "shop"} {
		for _, app := range []string{"manager", "gateway", "web"} {
			for _, zone := range []string{"a", "b"} {
				for _, protocol := range []string{"TCP", "UDP"} {
					for _, n := range []int32{53, 8443, 8444, 9444} {
						all = append(all, endpoint{
							map[string]string{"name": namespace}, map[string]string{"app": app, "zone": zone}, namespace == "shop", Port{Protocol: protocol, First: n, Last: n},
						})
					}
				}
			}
		}
	}
	return all
}

// reaches follows the words of the API.
func (p *Policy) reaches(e endpoint) bool {
	return p.concerns(Egress) && slices.ContainsFunc(p.Egress, func(r Rule) bool {
		peer := len(r.Peers) == 0 || slices.ContainsFunc(r.Peers, func(x Peer) bool {
			in := e.same
			if x.Namespaces != nil {
				in = x.Namespaces.Selects(e.namespace)
			}
			return x.Addresses || in && (x.Pods == nil || x.Pods.Selects(e.pod))
		})
		port := len(r.Ports) == 0 || slices.ContainsFunc(r.Ports, func(x Port) bool {
			return x.Protocol == e.port.Protocol && (x.Named || x.First <= e.port.First && e.port.Last <= x.Last)
		})
		return peer && port
	})
}

func drawSelector(t *rapid.T, name, key string, values ...string) *Selector {
	s := &Selector{}
	if v := rapid.SampledFrom(append(values, "")).Draw(t, name); v != "" {
		s.Labels = map[string]string{key: v}
	}
	if rapid.Bool().Draw(t, name+" has a requirement") {
		s.Requirements = []Requirement{{
			Key: key, Operator: rapid.SampledFrom([]Operator{In, NotIn, Exists, DoesNotExist}).Draw(t, name+" operator"),
			Values: rapid.SliceOfN(rapid.SampledFrom(values), 1, 2).Draw(t, name+" values"),
		}}
	}
	return s
}

func drawPolicy(t *rapid.T) Policy {
	p := Policy{Directions: rapid.SampledFrom([][]Direction{nil, {Egress}, {Ingress}, {Ingress, Egress}}).Draw(t, "directions")}
	for i := range rapid.IntRange(0, 3).Draw(t, "rules") {
		var r Rule
		for j := range rapid.IntRange(0, 2).Draw(t, "peers") {
			name := fmt.Sprintf("peer %d/%d", i, j)
			peer := Peer{Addresses: rapid.IntRange(0, 9).Draw(t, name) == 0}
			if rapid.IntRange(0, 4).Draw(t, name+" has namespaces") > 0 {
				peer.Namespaces = drawSelector(t, name+" namespaces", "name", "system", "shop")
			}
			if rapid.IntRange(0, 4).Draw(t, name+" has pods") > 0 {
				peer.Pods = drawSelector(t, name+" pods", "app", "manager", "gateway", "web")
			}
			r.Peers = append(r.Peers, peer)
		}
		for range rapid.IntRange(0, 2).Draw(t, "ports") {
			first := rapid.SampledFrom([]int32{53, 8443, 8444, 9444}).Draw(t, "first")
			r.Ports = append(r.Ports, Port{
				Protocol: rapid.SampledFrom([]string{"TCP", "UDP"}).Draw(t, "protocol"), First: first, Last: first + rapid.SampledFrom([]int32{0, 0, 1, 2000}).Draw(t, "more"),
				Named: rapid.IntRange(0, 9).Draw(t, "named") == 0,
			})
		}
		p.Egress = append(p.Egress, r)
	}
	return p
}

// TestNothingIsOpenUnseen: where a policy is said to open no egress, nothing can be reached by it that our own policy does
// not let through.
func TestNothingIsOpenUnseen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		if slices.Contains(p.Opens(own()), Egress) {
			return
		}
		for _, e := range world() {
			if p.reaches(e) && !own().reaches(e) {
				t.Fatalf("%+v reaches %+v, and is said to open nothing", p, e)
			}
		}
	})
}

// TestMoreIsNeverLess: one more rule closes nothing, and one more requirement selects nothing more.
func TestMoreIsNeverLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, more := drawPolicy(t), drawPolicy(t)
		p.Directions = []Direction{Egress}
		before := p.Opens(own())
		p.Egress = append(p.Egress, more.Egress...)
		if after := p.Opens(own()); len(after) < len(before) {
			t.Fatalf("with more rules it opens %v, before %v", after, before)
		}
		wide, narrow := drawSelector(t, "wide", "app", "web", "gateway"), drawSelector(t, "narrow", "app", "web", "gateway")
		both := Selector{Labels: wide.Labels, Requirements: append(slices.Clone(wide.Requirements), narrow.Requirements...)}
		for _, e := range world() {
			if both.Selects(e.pod) && !wide.Selects(e.pod) {
				t.Fatalf("%+v selects more than %+v", both, wide)
			}
		}
	})
}
