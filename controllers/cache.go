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
	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// CacheByObject bounds what the manager keeps in memory to what belongs to Features: no other pod, Job, volume or
// ConfigMap of the cluster. Whoever reads one of these kinds from the cache sees only those.
func CacheByObject(systemNamespace string) (map[client.Object]cache.ByObject, error) {
	labelled, err := labels.NewRequirement(v1alpha1.LabelFeature, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	ours := labels.NewSelector().Add(*labelled)
	return map[client.Object]cache.ByObject{
		&batchv1.Job{}:                  {Label: ours},
		&corev1.Pod{}:                   {Label: ours, Transform: withoutSpec},
		&corev1.PersistentVolumeClaim{}: {Label: ours},
		&networkingv1.NetworkPolicy{}:   {Label: ours},
		// The manager may list ConfigMaps of this name alone: what a project keeps in others is read one by one, where it is named.
		&corev1.ConfigMap{}:     {Field: fields.OneTermEqualSelector("metadata.name", contract.CAConfigMap)},
		&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{systemNamespace: {}}},
	}, nil
}

// withoutSpec keeps of a pod what controllers look at: whose it is, where, and how it fares.
func withoutSpec(o any) (any, error) {
	if pod, ok := o.(*corev1.Pod); ok {
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
		pod.ManagedFields = nil
	}
	return o, nil
}
