// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inert lists the fields of the API that this version does not act on. The CRDs refuse them. An object that an earlier version has
// stored can still have one, because the API server accepts a value that an update does not change: then a condition names it. To make a
// field act, remove its line here and its rule in api/v1alpha1; a test holds the two together.
package inert

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// field of an object that this version does not act on.
type field[T any] struct {
	// path as users write it; [] stands for any entry of a list.
	path string
	// used reports whether an object has a value that the CRD refuses.
	used func(object T) bool
}

func featureFields() []field[*v1alpha1.Feature] {
	return []field[*v1alpha1.Feature]{
		{"spec.delivery.pullRequest", func(f *v1alpha1.Feature) bool { return f.Spec.Delivery != nil && f.Spec.Delivery.PullRequest != nil }},
		{"spec.dependsOn", func(f *v1alpha1.Feature) bool { return len(f.Spec.DependsOn) > 0 }},
	}
}

func ruleFields() []field[*v1alpha1.Rules] {
	return []field[*v1alpha1.Rules]{
		{"models[].role", func(r *v1alpha1.Rules) bool {
			return slices.ContainsFunc(r.Models, func(m v1alpha1.ModelRef) bool {
				return m.Role != "primary" && m.Role != "summarizer" && m.Role != "supervisor"
			})
		}},
	}
}

// Feature names the fields of a Feature that this version does not act on, sorted.
func Feature(f *v1alpha1.Feature) []string { return names("", featureFields(), f) }

// Policy names the rules of a policy that this version does not act on, sorted.
func Policy(p *v1alpha1.SupervisorPolicy) []string {
	var list []string
	if r := p.Spec.Defaults; r != nil {
		list = append(list, names("spec.defaults.", ruleFields(), r)...)
	}
	if r := p.Spec.Overrides; r != nil {
		list = append(list, names("spec.overrides.", ruleFields(), r)...)
	}
	return list
}

// Paths are the paths of all fields that this version does not act on: of a Feature, and of the rules of a policy.
func Paths() (ofFeatures, ofRules []string) {
	return paths(featureFields()), paths(ruleFields())
}

func names[T any](prefix string, fields []field[T], object T) []string {
	var list []string
	for _, f := range fields {
		if f.used(object) {
			list = append(list, prefix+f.path)
		}
	}
	return list
}

func paths[T any](fields []field[T]) []string {
	var list []string
	for _, f := range fields {
		list = append(list, f.path)
	}
	return list
}
