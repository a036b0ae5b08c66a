// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/outcome"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
)

// gatherers get the facts that decisions need.
func (r *Reconciler) gatherers() map[lifecycle.Need]flow.Step[*scope] {
	return map[lifecycle.Need]flow.Step[*scope]{
		lifecycle.NeedTurn:  r.awaitTurn,               // this process starts one Feature at a time
		lifecycle.NeedLive:  r.observer().readLive,     // read: the API server
		lifecycle.NeedAreas: r.observer().compareAreas, // read: the cache
		lifecycle.NeedLocks: r.takeLocks,               // write: Leases of a new attempt
		lifecycle.NeedJob:   r.maker().makeAttempt,     // write: volumes and Job of a new attempt
	}
}

// settle gathers what the decision needs and decides again, until nothing is needed. A need that cannot be met now does
// not keep what else was decided from being done: reportUnmet ends the reconcile with it.
func (r *Reconciler) settle(ctx context.Context, s *scope) error {
	defer func() { s.endTurn() }()
	gather := r.gatherers()
	for range lifecycle.MaxNeeds {
		need := s.decision.Needs
		if need == "" {
			return nil
		}
		s.unmet = gather[need](ctx, s)
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
func reportUnmet(_ context.Context, s *scope) error { return s.unmet }

// serial reports whether the policy makes starts depend on other Features that may start at the same time.
func (s *scope) serial() bool {
	return s.effective.MaxRunning > 0 || s.effective.Concurrency.Overlap == policy.OverlapWait
}

// awaitTurn waits until no other Feature of this process counts, compares and starts. What was seen before may be
// outdated then.
func (r *Reconciler) awaitTurn(_ context.Context, s *scope) error {
	r.process.starting.Lock()
	s.endTurn = r.process.starting.Unlock
	s.turn, s.observed.Turn, s.observed.Live = true, true, false
	return nil
}
