// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
)

// gatherers get the facts that decisions need.
func (r *Reconciler) gatherers() map[lifecycle.Need]flow.Step[*scope] {
	return map[lifecycle.Need]flow.Step[*scope]{
		lifecycle.NeedLive:      r.observer().readLive, // read: the API server
		lifecycle.NeedAdmission: r.observer().admit,    // read: the cache, and what this process has admitted
		lifecycle.NeedLocks:     r.takeLocks,           // write: Leases of a new attempt
		lifecycle.NeedJob:       r.maker().makeAttempt, // write: volumes and Job of a new attempt
	}
}

// settle gathers what the decision needs and decides again, until nothing is needed. A need that cannot be met now does
// not keep what else was decided from being done: reportUnmet ends the reconcile with it.
func (r *Reconciler) settle(ctx context.Context, s *scope) error {
	defer r.process.admission.settle(s)
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
	e := flow.Of(err)
	if e == nil || e.Kind == flow.Retry || e.Kind == flow.Quiet {
		return nil
	}
	return &lifecycle.Refusal{Reason: e.Reason, Message: e.Error(), ByUser: e.Kind == flow.Stall}
}

// reportUnmet ends a reconcile in which a need could not be met.
func reportUnmet(_ context.Context, s *scope) error { return s.unmet }
