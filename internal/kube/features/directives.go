// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/deliveries"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// directives that the agent of a Feature is given: those of people, and what others have delivered where the policy tells agents of it.
func directives(f *v1alpha1.Feature, effective policy.Effective) (list []protocol.Directive) {
	for _, d := range f.Spec.Directives {
		list = append(list, protocol.Directive{
			ID: d.ID, Source: protocol.SourcePerson, Type: d.Type, Priority: d.Priority, Description: d.Description, Rationale: d.Rationale, Files: d.Files,
		})
	}
	for _, n := range foreignDeliveries(f.Status.Deliveries) {
		if d := n.Directive(effective.Concurrency.Deliveries); d != nil {
			list = append(list, *d)
		}
	}
	return list
}

// reviewed are the open directives of reviewers, as the watchdog gives them to the agent.
func reviewed(states []v1alpha1.DirectiveStatus) (list []protocol.Directive) {
	for _, d := range states {
		open := d.State == protocol.DirectivePending || d.State == protocol.DirectiveActive
		if open && d.Description != "" && review.Is(d.Source) {
			list = append(list, protocol.Directive{
				ID: d.ID, Source: d.Source, Type: d.Type, Priority: d.Priority, Description: d.Description, Rationale: d.Rationale, Files: d.Files,
			})
		}
	}
	return list
}

// foreignDeliveries and apiDeliveries are what others have delivered, in the words of the core and of the API.
func foreignDeliveries(list []v1alpha1.ForeignDelivery) (notices []deliveries.Notice) {
	for _, d := range list {
		notices = append(notices, deliveries.Notice{
			Feature: d.Feature, Branch: d.Branch, Commit: d.Commit, At: timeOf(d.DeliveryTime), Touches: d.Touches, Paths: d.Paths, Count: d.PathCount,
		})
	}
	return notices
}

func apiDeliveries(notices []deliveries.Notice) (list []v1alpha1.ForeignDelivery) {
	for _, n := range notices {
		list = append(list, v1alpha1.ForeignDelivery{
			Feature: n.Feature, Branch: n.Branch, Commit: n.Commit, DeliveryTime: apiTime(n.At), Touches: n.Touches, Paths: slices.Clone(n.Paths), PathCount: n.Count,
		})
	}
	return list
}

// maxFeature bounds the name of a Feature, maxTouches what it touches, in characters, as the API does.
const maxFeature, maxTouches = 63, 256

func boundDeliveries(s *v1alpha1.FeatureStatus) {
	s.Deliveries = s.Deliveries[max(0, len(s.Deliveries)-deliveries.MaxNotices):]
	for i := range s.Deliveries {
		d := &s.Deliveries[i]
		d.Feature, d.Branch, d.Commit, d.Touches = plain.CutRunes(d.Feature, maxFeature), plain.CutRunes(d.Branch, maxBranch), plain.CutRunes(d.Commit, maxHash), plain.CutRunes(d.Touches, maxTouches)
		d.Paths = clipAll(plain.CutList(d.Paths, deliveries.MaxPaths), deliveries.MaxPath)
	}
}
