// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// podRules are what a Feature or a policy says of pods. Lists and maps that are absent stay nil: that is not the same as empty ones.
func podRules(s *v1alpha1.Scheduling, secrets []v1alpha1.SecretRef, resources v1alpha1.Resources) policy.PodRules {
	r := policy.PodRules{Limits: quantities(resources.Limits), Requests: quantities(resources.Requests)}
	for _, secret := range secrets {
		r.PullSecrets = append(r.PullSecrets, secret.Name)
	}
	if s == nil {
		return r
	}
	r.PriorityClass = s.PriorityClassName
	for key, value := range s.NodeSelector {
		if r.NodeSelector == nil {
			r.NodeSelector = map[string]string{}
		}
		r.NodeSelector[key] = string(value)
	}
	if s.Tolerations != nil {
		r.Tolerations = []policy.Toleration{}
	}
	for _, t := range s.Tolerations {
		toleration := policy.Toleration{Key: t.Key, Operator: string(cmp.Or(t.Operator, v1alpha1.TolerateEqual)), Value: string(t.Value), Effect: string(t.Effect)}
		if t.TolerationSeconds != nil {
			toleration.Seconds = policy.Seconds{Set: true, N: *t.TolerationSeconds}
		}
		r.Tolerations = append(r.Tolerations, toleration)
	}
	if s.TopologySpreadConstraints != nil {
		r.Spread = []policy.Spread{}
	}
	for _, c := range s.TopologySpreadConstraints {
		r.Spread = append(r.Spread, policy.Spread{Key: c.TopologyKey, Unsatisfiable: string(c.WhenUnsatisfiable), MaxSkew: c.MaxSkew})
	}
	return r
}

// quantities by resource. One that is too large for a number counts as the largest: Kubernetes refuses it when the pod is made.
func quantities(list corev1.ResourceList) map[string]policy.Quantity {
	var all map[string]policy.Quantity
	for name, q := range list {
		if all == nil {
			all = map[string]policy.Quantity{}
		}
		all[string(name)] = policy.Quantity{Milli: q.MilliValue(), Text: q.String()}
	}
	return all
}
