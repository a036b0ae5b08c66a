// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// place says where a pod of a Feature runs. Pods without an agent mount the same volumes, which may be on one node: they are placed like those
// with one.
func place(spec *corev1ac.PodSpecApplyConfiguration, p policy.Pod) *corev1ac.PodSpecApplyConfiguration {
	if len(p.NodeSelector) > 0 {
		spec = spec.WithNodeSelector(p.NodeSelector)
	}
	if p.PriorityClass != "" {
		spec = spec.WithPriorityClassName(p.PriorityClass)
	}
	for _, t := range p.Tolerations {
		spec = spec.WithTolerations(toleration(t))
	}
	for _, name := range p.PullSecrets {
		spec = spec.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(name))
	}
	return spec
}

func toleration(t policy.Toleration) *corev1ac.TolerationApplyConfiguration {
	c := corev1ac.Toleration().WithKey(t.Key).WithOperator(corev1.TolerationOperator(t.Operator))
	if t.Value != "" {
		c = c.WithValue(t.Value)
	}
	if t.Effect != "" {
		c = c.WithEffect(corev1.TaintEffect(t.Effect))
	}
	if t.Seconds.Set {
		c = c.WithTolerationSeconds(t.Seconds.N)
	}
	return c
}

// spread keeps the agents of a project apart. What has no agent is short and small: it is not counted, and goes where its volumes are.
func spread(spec *corev1ac.PodSpecApplyConfiguration, list []policy.Spread) *corev1ac.PodSpecApplyConfiguration {
	for _, s := range list {
		spec = spec.WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().
			WithTopologyKey(s.Key).WithWhenUnsatisfiable(corev1.UnsatisfiableConstraintAction(s.Unsatisfiable)).WithMaxSkew(s.MaxSkew).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{v1alpha1.LabelRun: string(lifecycle.RunAgent)})))
	}
	return spec
}

// resources of the agent's container; nil where nobody says anything.
func resources(p policy.Pod) *corev1ac.ResourceRequirementsApplyConfiguration {
	if len(p.Limits)+len(p.Requests) == 0 {
		return nil
	}
	r := corev1ac.ResourceRequirements()
	if len(p.Limits) > 0 {
		r = r.WithLimits(quantities(p.Limits))
	}
	if len(p.Requests) > 0 {
		r = r.WithRequests(quantities(p.Requests))
	}
	return r
}

func quantities(list map[string]policy.Quantity) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, q := range list {
		all[corev1.ResourceName(name)] = resource.MustParse(q.Text) // it was written by a Quantity
	}
	return all
}
