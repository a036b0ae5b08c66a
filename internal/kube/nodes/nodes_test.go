// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// node has labels and runtimes; true of a runtime says that it maps users.
func node(labels map[string]string, handlers map[string]bool, taints ...corev1.Taint) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}}
	for name, maps := range handlers {
		n.Status.RuntimeHandlers = append(n.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: name, Features: &corev1.NodeRuntimeHandlerFeatures{UserNamespaces: &maps}})
	}
	return n
}

// TestUserNamespacesAreThoseOfEveryNodeThatMayRunAPod: one that may and cannot is enough against them, and one that may not does not count.
func TestUserNamespacesAreThoseOfEveryNodeThatMayRunAPod(t *testing.T) {
	able, unable := map[string]bool{"": true, "gvisor": false}, map[string]bool{"": false}
	agents := map[string]string{"pool": "agents"}
	taint := corev1.Taint{Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	tolerates := func(t policy.Toleration) place { return place{tolerations: []policy.Toleration{t}} }
	tests := map[string]struct {
		nodes   []corev1.Node
		where   place
		handler string
		want    bool
	}{
		"no node yet":                       {want: true},
		"all of them":                       {nodes: []corev1.Node{node(nil, able), node(agents, able)}, want: true},
		"not one of them":                   {nodes: []corev1.Node{node(nil, able), node(agents, unable)}},
		"a node that reports nothing":       {nodes: []corev1.Node{node(nil, nil)}},
		"a runtime that says nothing of it": {nodes: []corev1.Node{{Status: corev1.NodeStatus{RuntimeHandlers: []corev1.NodeRuntimeHandler{{}}}}}},
		"another runtime of the node":       {nodes: []corev1.Node{node(nil, able)}, handler: "gvisor"},
		"a runtime that the node has not":   {nodes: []corev1.Node{node(nil, able)}, handler: "kata"},
		"a node without the label":          {nodes: []corev1.Node{node(nil, unable), node(agents, able)}, where: place{selector: agents}, want: true},
		"a node with another value":         {nodes: []corev1.Node{node(map[string]string{"pool": "other"}, unable)}, where: place{selector: agents}, want: true},
		"a node with the label":             {nodes: []corev1.Node{node(agents, unable)}, where: place{selector: agents}},
		"Windows":                           {nodes: []corev1.Node{node(map[string]string{corev1.LabelOSStable: "windows"}, nil)}, want: true},
		"Linux":                             {nodes: []corev1.Node{node(map[string]string{corev1.LabelOSStable: "linux"}, nil)}},
		"a taint":                           {nodes: []corev1.Node{node(nil, unable, taint)}, want: true},
		"a taint that is tolerated":         {nodes: []corev1.Node{node(nil, unable, taint)}, where: tolerates(policy.Toleration{Key: "gpu", Operator: "Equal", Value: "a", Effect: "NoSchedule"})},
		"a taint that exists":               {nodes: []corev1.Node{node(nil, unable, taint)}, where: tolerates(policy.Toleration{Key: "gpu", Operator: "Exists"})},
		"a taint of another value":          {nodes: []corev1.Node{node(nil, unable, taint)}, where: tolerates(policy.Toleration{Key: "gpu", Operator: "Equal", Value: "b"}), want: true},
		"a taint of another effect":         {nodes: []corev1.Node{node(nil, unable, taint)}, where: tolerates(policy.Toleration{Key: "gpu", Operator: "Exists", Effect: "NoExecute"}), want: true},
		"another taint":                     {nodes: []corev1.Node{node(nil, unable, taint)}, where: tolerates(policy.Toleration{Key: "spot", Operator: "Exists"}), want: true},
		"a taint that only repels":          {nodes: []corev1.Node{node(nil, unable, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectPreferNoSchedule})}},
		"a node that is not ready":          {nodes: []corev1.Node{node(nil, unable, corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute})}},
		"a node of the RuntimeClass alone": {
			nodes: []corev1.Node{node(nil, unable), node(agents, map[string]bool{"kata": true}, taint)}, handler: "kata", want: true,
			where: place{}.with(&nodev1.Scheduling{NodeSelector: agents, Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range tc.nodes {
				tc.nodes[i] = *Stripped(&tc.nodes[i]) // the cache keeps no more
			}
			if got := allMap(tc.nodes, tc.where, tc.handler); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
