// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
	"github.com/tidewaiter/tidewaiter/internal/kube/networkpolicy"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
)

// CacheByObject limits the manager's cache to the objects of Features: no other pod, Job, volume or ConfigMap of the cluster. Of other
// network policies it keeps only the parts that open a network. Reads of these kinds from the cache see only these objects.
func CacheByObject(systemNamespace string) (map[client.Object]cache.ByObject, error) {
	labelled, err := labels.NewRequirement(v1alpha1.LabelFeature, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	ours := labels.NewSelector().Add(*labelled)
	return map[client.Object]cache.ByObject{
		&v1alpha1.Feature{}:             {Transform: withoutDonePrompt},
		&batchv1.Job{}:                  {Label: ours},
		&corev1.Pod{}:                   {Label: ours, Transform: withoutSpec},
		&corev1.PersistentVolumeClaim{}: {Label: ours},
		// Of others only what they open: network policies add up.
		&networkingv1.NetworkPolicy{}: {Transform: openingsOnly(desired.Isolation(systemNamespace))},
		// The manager may list ConfigMaps of this name alone: what a project keeps in others is read one by one, where it is named.
		&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector("metadata.name", protocol.CAConfigMap)},
		// Of nodes what decides about the pods of Features: they are large, and report often.
		&corev1.Node{}:          {Transform: strippedNode},
		&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{systemNamespace: {}}},
	}, nil
}

// openingsOnly keeps of a network policy that is not Tidewaiter's which pods it opens to more than base does.
func openingsOnly(base *isolation.Policy) func(any) (any, error) {
	return func(o any) (any, error) {
		policy, ok := o.(*networkingv1.NetworkPolicy)
		if !ok {
			return o, nil
		}
		if _, labelled := policy.Labels[v1alpha1.LabelFeature]; labelled {
			policy.ManagedFields = nil
			return policy, nil
		}
		return networkpolicy.Reduced(policy, base), nil
	}
}

// withoutDonePrompt keeps no prompt of a Feature that is delivered: no agent is started with it again, and Features that are done add up. Writes of such
// a Feature must be patches of what they change, as all of the manager's are.
func withoutDonePrompt(o any) (any, error) {
	if f, ok := o.(*v1alpha1.Feature); ok {
		if f.ManagedFields = nil; f.Status.Phase == v1alpha1.PhaseDelivered {
			f.Spec.Prompt = ""
		}
	}
	return o, nil
}

// withoutSpec keeps of a pod what controllers look at: whose it is, where, for which nodes, and how it fares.
func withoutSpec(o any) (any, error) {
	if pod, ok := o.(*corev1.Pod); ok {
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, NodeSelector: pod.Spec.NodeSelector}
		pod.ManagedFields = nil
	}
	return o, nil
}

func strippedNode(o any) (any, error) {
	if node, ok := o.(*corev1.Node); ok {
		return nodes.Stripped(node), nil
	}
	return o, nil
}
