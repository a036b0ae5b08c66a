// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

// lookAtHeeds counts how many directives of reviewers the agents of the project have addressed, from the cache, before an attempt starts. The attempt keeps
// what the status says then. Without a usable policy, nobody knows which reviewers run.
func (r observer) lookAtHeeds(ctx context.Context, s *scope) error {
	switch {
	case s.active() || s.feature.Status.CompletionTime != nil || s.effective.Hash == "":
		return nil
	case len(review.All(s.effective)) == 0:
		s.observed.Heeds = []review.Heed{}
		return nil
	}
	var features v1alpha1.FeatureList
	if err := r.client.List(ctx, &features, client.InNamespace(s.feature.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Features to count directives of reviewers: %w", err)
	}
	s.observed.Heeds = observe.Heeds(features.Items, s.effective)
	return nil
}
