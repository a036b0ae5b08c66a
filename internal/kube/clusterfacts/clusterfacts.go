// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterfacts reads what the API server says of a cluster, for core/preflight. The manager and the preflight share it.
package clusterfacts

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
)

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// Annotations by which a StorageClass is the default.
const (
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
)

// Classes lists the StorageClasses.
func Classes(ctx context.Context, reader client.Reader) ([]preflight.StorageClass, error) {
	var list storagev1.StorageClassList
	if err := reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list StorageClasses: %w", err)
	}
	var all []preflight.StorageClass
	for _, c := range list.Items {
		all = append(all, preflight.StorageClass{
			Name: c.Name, Provisioner: c.Provisioner, Default: c.Annotations[defaultClass] == "true" || c.Annotations[betaDefaultClass] == "true",
			Waits: c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer,
		})
	}
	return all, nil
}

// Nodes lists the nodes that may run pods of Features to whose place no policy adds anything. Their room is left out.
func Nodes(ctx context.Context, reader client.Reader) ([]preflight.Node, error) {
	list, err := takers(ctx, reader)
	if err != nil {
		return nil, err
	}
	var all []preflight.Node
	for i := range list {
		all = append(all, node(&list[i]))
	}
	return all, nil
}

// Room is Nodes with what no pod requests of each. It lists all pods of the cluster.
func Room(ctx context.Context, reader client.Reader) ([]preflight.Node, error) {
	list, err := takers(ctx, reader)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var all []preflight.Node
	for i := range list {
		n := node(&list[i])
		if allocatable := list[i].Status.Allocatable; !list[i].Spec.Unschedulable {
			n.CPU, n.Memory, n.Pods = allocatable.Cpu().MilliValue(), allocatable.Memory().Value(), allocatable.Pods().Value()
		}
		for j := range pods.Items {
			if p := &pods.Items[j]; p.Spec.NodeName == n.Name && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				cpu, memory := requests(&p.Spec)
				n.CPU, n.Memory, n.Pods = n.CPU-cpu, n.Memory-memory, n.Pods-1
			}
		}
		all = append(all, n)
	}
	return all, nil
}

func takers(ctx context.Context, reader client.Reader) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return !nodes.Takes(&n) }), nil
}

func node(n *corev1.Node) preflight.Node {
	return preflight.Node{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], UserNamespaces: nodes.MapsUsers(n, "")}
}

// requests of a pod: thousandths of a core, and bytes. Init containers end before the others start, and sidecars do not.
func requests(spec *corev1.PodSpec) (cpu, memory int64) {
	for _, c := range spec.Containers {
		cpu, memory = cpu+c.Resources.Requests.Cpu().MilliValue(), memory+c.Resources.Requests.Memory().Value()
	}
	for _, c := range spec.InitContainers {
		ownCPU, ownMemory := c.Resources.Requests.Cpu().MilliValue(), c.Resources.Requests.Memory().Value()
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			cpu, memory = cpu+ownCPU, memory+ownMemory
		} else {
			cpu, memory = max(cpu, ownCPU), max(memory, ownMemory)
		}
	}
	return cpu + spec.Overhead.Cpu().MilliValue(), memory + spec.Overhead.Memory().Value()
}

// PodSecurity is the level that a namespace enforces, or "privileged" if it enforces none.
func PodSecurity(ctx context.Context, reader client.Reader, name string) (string, error) {
	var namespace corev1.Namespace
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return "", fmt.Errorf("read Namespace %s: %w", name, err)
	}
	if level := namespace.Labels["pod-security.kubernetes.io/enforce"]; level != "" {
		return level, nil
	}
	return "privileged", nil
}

// Features gives the names of Features that report an open network, and a problem of their watchdog, each as namespace/name.
func Features(ctx context.Context, reader client.Reader) (opened, degraded []string, err error) {
	var list v1alpha1.FeatureList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list Features: %w", err)
	}
	for _, f := range list.Items {
		for _, c := range f.Status.Conditions {
			switch {
			case c.Type == v1alpha1.ConditionIsolated && c.Reason == v1alpha1.ReasonNetworkOpened:
				opened = append(opened, f.Namespace+"/"+f.Name)
			case c.Type == v1alpha1.ConditionSupervised && c.Reason == v1alpha1.ReasonSupervisionDegraded:
				degraded = append(degraded, f.Namespace+"/"+f.Name)
			}
		}
	}
	slices.Sort(opened)
	slices.Sort(degraded)
	return opened, degraded, nil
}
