// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/outcome"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// gatherer gets one fact that a decision needs.
type gatherer func(*Reconciler, context.Context, *scope) error

// gatherers has one gatherer for each need.
func gatherers() map[lifecycle.Need]gatherer {
	return map[lifecycle.Need]gatherer{
		lifecycle.NeedTurn:  (*Reconciler).awaitTurn,    // this process starts one Feature at a time
		lifecycle.NeedLive:  (*Reconciler).readLive,     // read: the API server
		lifecycle.NeedAreas: (*Reconciler).compareAreas, // read: the cache
		lifecycle.NeedLocks: (*Reconciler).takeLocks,    // write: Leases of a new attempt
		lifecycle.NeedJob:   (*Reconciler).makeAttempt,  // write: volumes and Job of a new attempt
	}
}

// settle gathers what the decision needs and decides again, until nothing is needed. A need that cannot be met now does
// not keep what else was decided from being done: reportUnmet ends the reconcile with it.
func (r *Reconciler) settle(ctx context.Context, s *scope) error {
	defer func() { s.endTurn() }()
	gather := gatherers()
	for range lifecycle.MaxNeeds {
		need := s.decision.Needs
		if need == "" {
			return nil
		}
		s.unmet = gather[need](r, ctx, s)
		if o := obstacle(s.unmet); o != nil {
			s.observed.Obstacle = o
			s.next()
		}
		if s.unmet != nil {
			return nil
		}
		s.next()
	}
	if need := s.decision.Needs; need != "" {
		s.unmet = fmt.Errorf("decide: %s is needed after %d facts were gathered", need, lifecycle.MaxNeeds)
	}
	return nil
}

// obstacle is what an ending means for the decision: something has to happen elsewhere, or a person has to act, before an
// attempt can start. It is nil for other errors.
func obstacle(err error) *lifecycle.Refusal {
	e := outcome.Of(err)
	if e == nil || e.Kind == outcome.Retry || e.Kind == outcome.Quiet {
		return nil
	}
	return &lifecycle.Refusal{Reason: e.Reason, Message: e.Error(), ByUser: e.Kind == outcome.Stall}
}

// reportUnmet ends a reconcile in which a need could not be met.
func (r *Reconciler) reportUnmet(_ context.Context, s *scope) error { return s.unmet }

// serial reports whether the policy makes starts depend on other Features that may start at the same time.
func (s *scope) serial() bool {
	return s.effective.MaxRunning > 0 || s.effective.Concurrency.Overlap == policy.OverlapWait
}

// awaitTurn waits until no other Feature of this process counts, compares and starts. What was seen before may be
// outdated then.
func (r *Reconciler) awaitTurn(_ context.Context, s *scope) error {
	r.starting.Lock()
	s.endTurn = r.starting.Unlock
	s.turn, s.observed.Turn, s.observed.Live = true, true, false
	return nil
}
