// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

// compareAreas compares the Feature's areas with those of others at work on its repository, from the cache: unlike a
// lock, what it finds is no promise. What this process has just begun is known without the cache.
func (r observer) compareAreas(ctx context.Context, s *scope) error {
	s.areas = &lifecycle.Areas{Ignore: true}
	if how := s.effective.Concurrency.Overlap; how != policy.OverlapAllow {
		var features v1alpha1.FeatureList
		// They are only looked at: a copy of every Feature would cost more than everything else.
		if err := r.client.List(ctx, &features, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list Features to compare areas: %w", err)
		}
		areas := observe.Areas(s.feature, features.Items, r.hasBegun, how == policy.OverlapWait)
		s.areas = &areas
	}
	s.observed.Areas = s.areas
	return nil
}

// hasBegun reports whether this process started an attempt of a Feature that its status does not show yet.
func (r observer) hasBegun(f *v1alpha1.Feature) bool {
	attempt, ok := r.process.begun.Load(f.UID)
	if !ok {
		return false
	}
	if n, isNumber := attempt.(int64); isNumber && f.Status.Attempt < n {
		return true
	}
	r.process.begun.Delete(f.UID)
	return false
}
