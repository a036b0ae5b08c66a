// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

// indexDelivered finds Features by the repository that they have delivered to, and the day. A project may have thousands that delivered long
// ago, and a Feature at work looks often.
const indexDelivered = ".tidewaiter.delivered"

// day of the index.
const day = 24 * time.Hour

func deliveredOn(repository string, at time.Time) string {
	return at.UTC().Format(time.DateOnly) + " " + repository
}

// deliveredTo is the index.
func deliveredTo(o client.Object) []string {
	f, ok := o.(*v1alpha1.Feature)
	if !ok {
		return nil
	}
	if repository := observe.DeliveredTo(f); repository != "" {
		return []string{deliveredOn(repository, f.Status.CompletionTime.Time)}
	}
	return nil
}

// lookAtDeliveries finds what others of the project have delivered while this Feature was at work, from the cache: what it does not show yet
// wakes this Feature when it does. A Feature whose watchdog has said its last word has no agent to tell; another attempt of it looks again.
func (r observer) lookAtDeliveries(ctx context.Context, s *scope) error {
	if !s.active() || ended(s.feature) || s.effective.Concurrency.Deliveries == policy.DeliveriesOff {
		return nil
	}
	began, repository := s.now, locks.Repository(s.feature.Spec.Repository.URL)
	if at := s.feature.Status.StartTime; at != nil {
		began = at.Time
	}
	var found []v1alpha1.Feature
	for on := began.UTC().Truncate(day); !on.After(s.now.Add(day)); on = on.Add(day) { // one day more, where the clock of another replica is ahead
		var features v1alpha1.FeatureList
		if err := r.client.List(ctx, &features, client.InNamespace(s.feature.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingFields{indexDelivered: deliveredOn(repository, on)}); err != nil {
			return fmt.Errorf("list Features that have delivered: %w", err)
		}
		found = append(found, features.Items...)
	}
	s.observed.Deliveries = observe.Deliveries(s.feature, s.observed.Memory.Deliveries, found, s.effective)
	return nil
}

// deliveriesPause gathers the deliveries of a project: each one concerns all that are at work, and each of these would write its status for each.
const deliveriesPause = 5 * time.Second

// ended tells whether the watchdog of a Feature's attempt has said its last word.
func ended(f *v1alpha1.Feature) bool {
	run := f.Status.Run
	return run != nil && run.Final != nil && run.Final.Epoch == f.Status.Attempt
}

// delivered wakes the Features of a project that are at work on the same repository a little after one of it has delivered. The status of a Feature that the
// delivery does not concern stays as it is.
func (r waker) delivered() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if len(deliveredTo(e.ObjectOld)) == len(deliveredTo(e.ObjectNew)) {
				return
			}
			f, ok := e.ObjectNew.(*v1alpha1.Feature)
			if !ok {
				return
			}
			repository, atWork := locks.Repository(f.Spec.Repository.URL), r.find(ctx, f.Namespace, indexState, stateActive)
			for i := range atWork {
				if g := &atWork[i]; !ended(g) && locks.Repository(g.Spec.Repository.URL) == repository {
					queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(g)}, deliveriesPause)
				}
			}
		},
	}
}
