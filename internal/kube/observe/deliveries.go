// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/deliveries"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
)

// DeliveredTo is the repository to which a Feature has delivered a change; empty if it has delivered none.
func DeliveredTo(f *v1alpha1.Feature) string {
	if f.Status.Phase != v1alpha1.PhaseDelivered || f.Status.CompletionTime == nil || f.Status.Run == nil || f.Status.Run.Final == nil || f.Status.Run.Final.PathCount == 0 {
		return ""
	}
	return locks.Repository(f.Spec.Repository.URL)
}

// Deliveries of other Features of the project that concern a working one, including the ones already known. It is never nil.
func Deliveries(f *v1alpha1.Feature, known []deliveries.Notice, others []v1alpha1.Feature, effective policy.Effective) []deliveries.Notice {
	work, repository := deliveries.Work{Plan: features.Plan(f)}, locks.Repository(f.Spec.Repository.URL)
	if f.Status.StartTime != nil {
		work.Since = f.Status.StartTime.Time
	}
	for _, c := range effective.Contracts {
		if f.Spec.Plan != nil && slices.Contains(f.Spec.Plan.Contracts, c.Name) {
			work.Contracts = append(work.Contracts, c)
		}
	}
	var found []deliveries.Delivery
	for i := range others {
		g := &others[i]
		if g.UID == f.UID || g.Namespace != f.Namespace || g.Status.CompletionTime == nil || g.Status.CompletionTime.Time.Before(work.Since) || DeliveredTo(g) != repository {
			continue
		}
		final := g.Status.Run.Final
		found = append(found, deliveries.Delivery{
			Feature: g.Name, Branch: g.Status.Branch, Commit: final.Head, At: g.Status.CompletionTime.Time, Paths: final.Paths, Count: final.PathCount,
		})
	}
	return append([]deliveries.Notice{}, deliveries.Concern(known, found, work)...)
}
