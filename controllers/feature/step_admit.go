// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

// admit lets the Feature start as far as others are concerned, or finds what is in its way. No call of the API is made meanwhile: a slow webhook in
// one project delays no other.
func (r observer) admit(ctx context.Context, s *scope) error {
	a := &r.process.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := r.lookAtProject(ctx, s); err != nil {
		return err
	}
	if err := r.compareAreas(ctx, s); err != nil {
		return err
	}
	if s.next(); s.decision.Needs.Admits() {
		a.attempts.Store(s.feature.UID, s.feature.Status.Attempt+1)
		s.admitted = true
	}
	return nil
}

// compareAreas compares the Feature's areas with those of others at work on its repository, from the cache: unlike a
// lock, what it finds is no promise. What this process has admitted is known without the cache.
func (r observer) compareAreas(ctx context.Context, s *scope) error {
	s.areas = &lifecycle.Areas{Ignore: true}
	if how := s.effective.Concurrency.Overlap; how != policy.OverlapAllow {
		var features v1alpha1.FeatureList
		// They are only looked at: a copy of every Feature would cost more than everything else.
		if err := r.client.List(ctx, &features, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list Features to compare areas: %w", err)
		}
		areas := observe.Areas(s.feature, features.Items, r.process.admission.has, how == policy.OverlapWait)
		s.areas = &areas
	}
	s.observed.Areas = s.areas
	return nil
}

// admission decides between the Features that want to start: one after the other finds how many agents run, and counts from then on. The zero value
// is ready. Only the leader reconciles, so that what one process has admitted is all that was. A new leader sees in its cache what the one before it
// has started.
type admission struct {
	mu sync.Mutex
	// attempts (int64) that were admitted and that no status shows yet, by the uid of their Feature.
	attempts sync.Map
}

// has reports whether an attempt of a Feature was admitted that its status does not show yet.
func (a *admission) has(f *v1alpha1.Feature) bool {
	attempt, ok := a.attempts.Load(f.UID)
	if !ok {
		return false
	}
	if n, isNumber := attempt.(int64); isNumber && f.Status.Attempt < n {
		return true
	}
	a.attempts.CompareAndDelete(f.UID, attempt) // another one may have been admitted meanwhile
	return false
}

// forget a Feature that is gone.
func (a *admission) forget(f *v1alpha1.Feature) { a.attempts.Delete(f.UID) }

// settle gives the place of a Feature back that did not start after all. Where it is not known whether its Job was made, as after a timeout, it keeps
// the place until somebody has looked.
func (a *admission) settle(s *scope) {
	unknown := s.unmet != nil && obstacle(s.unmet) == nil
	if !s.observed.JobMade && !unknown && (s.admitted || s.observed.Live && len(s.observed.Jobs) == 0) {
		a.attempts.Delete(s.feature.UID)
	}
}
