// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

// gates of a Feature as its watchdog runs them.
func gates(f *v1alpha1.Feature) []protocol.Gate {
	var list []protocol.Gate
	for _, g := range f.Spec.Gates {
		list = append(list, supervisorpolicy.Gate(v1alpha1.PolicyGate{Gate: g}))
	}
	return list
}

// unnamedGates are the gates that neither a task nor the delivery names.
func unnamedGates(f *v1alpha1.Feature, tasks []protocol.Task) []string {
	var list []string
	for _, g := range f.Spec.Gates {
		named := slices.Contains(namedGates(f), g.Name) ||
			slices.ContainsFunc(tasks, func(t protocol.Task) bool { return slices.Contains(t.Gates, g.Name) })
		if !named {
			list = append(list, g.Name)
		}
	}
	return list
}

// namedGates are the gates that the Feature itself names for its delivery.
func namedGates(f *v1alpha1.Feature) []string {
	if f.Spec.Delivery == nil {
		return nil
	}
	return f.Spec.Delivery.Gates
}

// DeliveryGates are the gates that must pass before the delivery of a Feature, each with its image: the gates of the policy, then its own ones of
// other names. An image is empty for a runtime whose program is in Tidewaiter's own image.
func DeliveryGates(f *v1alpha1.Feature, effective policy.Effective) []protocol.Gate {
	list := slices.Clone(effective.Gates)
	for _, g := range gates(f) {
		if slices.Contains(namedGates(f), g.Name) && !inPolicy(effective, g.Name) {
			list = append(list, g)
		}
	}
	image := f.Spec.Agent.Image
	if runtime, _ := runtimes.Find(f.Spec.Agent.Runtime); runtime.Included {
		image = ""
	}
	for i := range list {
		list[i].Image = cmp.Or(list[i].Image, image)
	}
	return list
}

func inPolicy(effective policy.Effective, gate string) bool {
	return slices.ContainsFunc(effective.Gates, func(g policy.Gate) bool { return g.Name == gate })
}

// ReplacedGates names the gates of spec.delivery.gates that do not run, because the policy has other ones of these names.
func ReplacedGates(f *v1alpha1.Feature, effective policy.Effective) string {
	var names []string
	for _, name := range namedGates(f) {
		if inPolicy(effective, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("The policy has gates of these names, which run before the delivery instead of the ones in spec.gates: %s.", strings.Join(plain.CutList(names, 8), ", "))
}
