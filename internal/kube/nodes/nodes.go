// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes finds out what the nodes can do that may run the pods of a Feature.
package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=get;list;watch

// Setting says who decides whether pods get user namespaces.
type Setting string

// Settings. Auto uses what nodes report. They do not report whether the file system of a volume can be mounted with mapped users, so
// that users may know better.
const (
	Auto   Setting = "auto"
	Always Setting = "true"
	Never  Setting = "false"
)

// Settings are all of them.
func Settings() []Setting { return []Setting{Auto, Always, Never} }

// UserNamespaces decides whether a pod gets a user namespace of its own. It does if every node that may run it reports that its container
// runtime can do that. It also does if there is no such node yet: an agent that later does not start is better than one that is less
// isolated than users think. The argument runtimeClass is the pod's, or empty.
func UserNamespaces(ctx context.Context, reader client.Reader, setting Setting, pod policy.Pod, runtimeClass string) (bool, error) {
	if setting != Auto {
		return setting == Always, nil
	}
	where, handler := place{selector: pod.NodeSelector, tolerations: pod.Tolerations}, ""
	if runtimeClass != "" {
		var class nodev1.RuntimeClass
		err := reader.Get(ctx, client.ObjectKey{Name: runtimeClass}, &class)
		if apierrors.IsNotFound(err) {
			return true, nil // admission refuses the pod, and the condition says so
		}
		if err != nil {
			return false, fmt.Errorf("read RuntimeClass %s: %w", runtimeClass, err)
		}
		handler = class.Handler
		where = where.with(class.Scheduling)
	}
	var list corev1.NodeList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list nodes: %w", err)
	}
	return allMap(list.Items, where, handler), nil
}

// allMap reports whether no node that may run a pod lacks user namespaces with a runtime.
func allMap(list []corev1.Node, where place, handler string) bool {
	for i := range list {
		if n := &list[i]; where.takes(n) && !MapsUsers(n, handler) {
			return false
		}
	}
	return true
}

// Stripped keeps the parts of a node that this package reads.
func Stripped(n *corev1.Node) *corev1.Node {
	return &corev1.Node{
		TypeMeta:   n.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels},
		Spec:       corev1.NodeSpec{Taints: n.Spec.Taints},
		Status:     corev1.NodeStatus{RuntimeHandlers: n.Status.RuntimeHandlers},
	}
}

// MapsUsers reports whether a runtime of a node maps users. A kubelet that reports no handlers is too old to.
func MapsUsers(n *corev1.Node, handler string) bool {
	return slices.ContainsFunc(n.Status.RuntimeHandlers, func(h corev1.NodeRuntimeHandler) bool {
		return h.Name == handler && h.Features != nil && ptr.Deref(h.Features.UserNamespaces, false)
	})
}

// place is what a pod asks of its node.
type place struct {
	selector    map[string]string
	tolerations []policy.Toleration
}

// with adds what admission adds to the pods of a RuntimeClass.
func (p place) with(s *nodev1.Scheduling) place {
	if s == nil {
		return p
	}
	selector := maps.Clone(s.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	maps.Copy(selector, p.selector)
	tolerations := slices.Clone(p.tolerations)
	for _, t := range s.Tolerations {
		tolerations = append(tolerations, policy.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)})
	}
	return place{selector: selector, tolerations: tolerations}
}

// takes reports whether a node may run the pod, now or when its state has changed: taints of node.kubernetes.io come and go with that. Pods of
// Features run on Linux alone.
func (p place) takes(n *corev1.Node) bool {
	if os := n.Labels[corev1.LabelOSStable]; os != "" && os != string(corev1.Linux) {
		return false
	}
	for key, value := range p.selector {
		if is, ok := n.Labels[key]; !ok || is != value {
			return false
		}
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/") && !p.tolerate(t)
	})
}

// Takes reports whether a node may run the pods of Features to whose place no policy adds anything.
func Takes(n *corev1.Node) bool { return place{}.takes(n) }

func (p place) tolerate(taint corev1.Taint) bool {
	return slices.ContainsFunc(p.tolerations, func(t policy.Toleration) bool {
		return (t.Effect == "" || t.Effect == string(taint.Effect)) && (t.Key == "" || t.Key == taint.Key) &&
			(t.Operator == string(corev1.TolerationOpExists) || t.Value == taint.Value)
	})
}
