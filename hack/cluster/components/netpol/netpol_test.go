// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/kube-network-policies/pkg/network"
)

// engineFunc lets a function be the policy engine.
type engineFunc func(*network.Packet) (bool, error)

func (f engineFunc) EvaluatePacket(_ context.Context, packet *network.Packet) (bool, error) {
	return f(packet)
}

// packet is an IPv4 packet with the beginning of a TCP connection in it.
func packet(source, destination string) []byte {
	bytes := make([]byte, 40)
	bytes[0], bytes[9], bytes[32] = 0x45, 6, 0x50
	copy(bytes[12:], netip.MustParseAddr(source).AsSlice())
	copy(bytes[16:], netip.MustParseAddr(destination).AsSlice())
	binary.BigEndian.PutUint16(bytes[22:], 443)
	return bytes
}

func TestGate(t *testing.T) {
	yes := engineFunc(func(*network.Packet) (bool, error) { return true, nil })
	all := func(netip.Addr) bool { return true }
	none := func(netip.Addr) bool { return false }
	tests := map[string]struct {
		engine  engineFunc
		known   func(netip.Addr) bool
		payload []byte
		want    bool
	}{
		"allowed":                          {yes, all, packet("10.244.0.2", "10.244.0.3"), true},
		"denied":                           {func(*network.Packet) (bool, error) { return false, nil }, all, packet("10.244.0.2", "10.244.0.3"), false},
		"not judged":                       {func(*network.Packet) (bool, error) { return true, errors.New("boom") }, all, packet("10.244.0.2", "10.244.0.3"), false},
		"from a pod that stays unknown":    {yes, none, packet("10.244.0.2", "192.0.2.1"), false},
		"to a pod that stays unknown":      {yes, none, packet("192.0.2.1", "10.244.0.2"), false},
		"between others than pods":         {yes, none, packet("192.0.2.1", "192.0.2.2"), true},
		"too short to be a packet":         {yes, all, []byte{0x45}, false},
		"a header that promises more":      {yes, all, packet("10.244.0.2", "10.244.0.3")[:24], false},
		"of a version that does not exist": {yes, all, append([]byte{0xf5}, packet("10.244.0.2", "10.244.0.3")[1:]...), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{engine: test.engine, known: test.known, pods: netip.MustParsePrefix("10.244.0.0/16")}
				if got := g.allows(t.Context(), test.payload); got != test.want {
					t.Errorf("allowed: %t, want %t", got, test.want)
				}
			})
		})
	}
}

// A pod's first packet comes before the API server knows its address. It waits for the verdict on that very pod.
func TestGateWaitsForThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		known := func(netip.Addr) bool { return time.Since(begin) > time.Second }
		g := &gate{
			engine: engineFunc(func(*network.Packet) (bool, error) { return true, nil }),
			known:  known, pods: netip.MustParsePrefix("10.244.0.0/16"),
		}
		if !g.allows(t.Context(), packet("10.244.0.2", "192.0.2.1")) {
			t.Error("the packet was dropped though its pod became known")
		}
		if waited := time.Since(begin); waited < time.Second || waited > time.Second+2*unknownPodInterval {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestResolverForgetsFinishedPods(t *testing.T) {
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byAddress: addresses})
	r := &resolver{pods: pods}
	pod := func(name string, phase corev1.PodPhase, hostNetwork bool) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
			Spec:       corev1.PodSpec{HostNetwork: hostNetwork},
			Status:     corev1.PodStatus{Phase: phase, PodIPs: []corev1.PodIP{{IP: "10.244.0.2"}}},
		}
	}
	for _, p := range []*corev1.Pod{pod("done", corev1.PodSucceeded, false), pod("failed", corev1.PodFailed, false), pod("host", corev1.PodRunning, true)} {
		if err := pods.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if key, ok := r.LookupPod("10.244.0.2"); ok {
		t.Errorf("the address is still %s's", key)
	}
	if err := pods.Add(pod("next", corev1.PodPending, false)); err != nil {
		t.Fatal(err)
	}
	if key, ok := r.LookupPod("10.244.0.2"); !ok || key != "n/next" {
		t.Errorf("the address is %q's, want n/next", key)
	}
}

func TestRulesetFailsClosed(t *testing.T) {
	rules := ruleset(netip.MustParsePrefix("10.244.0.0/16"))
	if strings.Contains(rules, "bypass") {
		t.Error("packets pass when nobody judges them")
	}
	if got := strings.Count(rules, "-j NFQUEUE --queue-num 100"); got != 3 {
		t.Errorf("%d rules queue packets, want those to the node, from pods and to pods:\n%s", got, rules)
	}
}
