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

// gates of a Feature as its watchdog runs them, each with the image of the agent.
func gates(f *v1alpha1.Feature) []protocol.Gate {
	var list []protocol.Gate
	for _, g := range f.Spec.Gates {
		list = append(list, supervisorpolicy.Gate(v1alpha1.PolicyGate{Gate: g, Image: image(f)}))
	}
	return list
}

// image that the agent of a Feature runs in; empty for a runtime whose program is in Tidewaiter's own image.
func image(f *v1alpha1.Feature) string {
	if runtime, _ := runtimes.Find(f.Spec.Agent.Runtime); runtime.Included {
		return ""
	}
	return f.Spec.Agent.Image
}

// gatePods says whether each gate of a task runs in a pod of its own: in this mode the agent's container cannot write to the workspace, and the work
// outlives the agent's pod.
func gatePods(f *v1alpha1.Feature, mode string) bool {
	return mode == policy.ModeDeterministic && !Ephemeral(f)
}

// reportless is a notice for users about gates that cannot write their reports in this mode; empty for none.
func reportless(f *v1alpha1.Feature, mode string) string {
	if mode != policy.ModeDeterministic || !Ephemeral(f) {
		return ""
	}
	var names []string
	for _, g := range f.Spec.Gates {
		if g.Report != nil {
			names = append(names, g.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("With spec.workspace.ephemeral, gates run in the agent's container, which cannot write to the workspace in Deterministic mode. "+
		"Gates with a report fail there: %s. Create the Feature without spec.workspace.ephemeral, or remove the reports.", strings.Join(plain.CutList(names, 8), ", "))
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
	for i := range list {
		list[i].Image = cmp.Or(list[i].Image, image(f))
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
