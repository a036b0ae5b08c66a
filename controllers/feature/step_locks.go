// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
)

// lookAtLocks finds out which locks the Feature has, and who is in the way of others.
func (r observer) lookAtLocks(ctx context.Context, s *scope, from client.Reader) error {
	survey, err := r.locks.Look(ctx, from, s.feature, s.now)
	if err != nil {
		return err
	}
	s.noteLocks(survey)
	return nil
}

// noteLocks makes facts of a survey.
func (s *scope) noteLocks(survey leases.Survey) {
	s.locks = survey
	o := lifecycle.Locks{
		Wanted: leases.Contracts(s.feature), Held: slices.Sorted(maps.Keys(survey.Held)),
		Taken: s.locksTaken, Fail: s.effective.Concurrency.Locks == policy.Fail,
	}
	for _, contract := range o.Held {
		lease := survey.Held[contract]
		if renew := lease.Spec.RenewTime.Add(locks.RenewAfter); o.Renew.IsZero() || renew.Before(o.Renew) {
			o.Renew = renew
		}
		if from := lease.Annotations[v1alpha1.AnnotationReclaimedFrom]; from != "" {
			o.Reclaimed = append(o.Reclaimed, lifecycle.Contender{Contract: contract, Who: locks.ParseHolder(from).For(s.feature.Namespace)})
		}
	}
	_, busy := locks.Choose(survey.Wanted)
	for _, w := range busy {
		o.Busy = append(o.Busy, lifecycle.Contender{Contract: w.Contract, Who: w.Holder.For(s.feature.Namespace), Before: w.Before})
	}
	for _, contract := range o.Wanted {
		if !slices.ContainsFunc(s.effective.Contracts, func(c policy.Contract) bool { return c.Name == contract }) {
			o.Unguarded = append(o.Unguarded, contract)
		}
	}
	s.observed.Locks = o
}

// renewLocks renews what is held, before it expires.
func (r *Reconciler) renewLocks(ctx context.Context, s *scope) error {
	if !s.decision.RenewLocks {
		return nil
	}
	return r.Locks.Renew(ctx, s.locks, s.now)
}

// takeLocks takes all locks that are wanted or none.
func (r *Reconciler) takeLocks(ctx context.Context, s *scope) error {
	log.FromContext(ctx).Info("Taking locks", "contracts", s.observed.Locks.Wanted)
	survey, err := r.Locks.Take(ctx, s.feature, s.now)
	if err != nil {
		return err
	}
	s.locksTaken = true
	s.noteLocks(survey)
	return nil
}

// freeLocks frees what no status names any more. Those of an attempt that could not be made are kept for the next try.
func (r *Reconciler) freeLocks(ctx context.Context, s *scope) error {
	if len(s.decision.Unlock) == 0 || s.unmet != nil {
		return nil //nolint:nilerr // reportUnmet reports it
	}
	log.FromContext(ctx).Info("Freeing locks", "contracts", s.decision.Unlock)
	return r.Locks.Free(ctx, s.locks, s.decision.Unlock)
}
