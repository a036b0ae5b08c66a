// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
)

// Held are the contracts whose lock a Feature's status names, and whose Lease in the namespace confirms that now: only the agent of this
// Feature may change their paths. A cache that does not confirm it may be late, so Held then asks the API server.
func Held(ctx context.Context, cached, live client.Reader, namespace string, f *v1alpha1.Feature, now time.Time) ([]string, error) {
	var held []string
	for _, contract := range f.Status.Locks {
		for _, reader := range []client.Reader{cached, live} {
			var lease coordinationv1.Lease
			err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: locks.Name(f.Spec.Repository.URL, contract)}, &lease)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read lock of contract %s: %w", contract, err)
			}
			if err == nil && read(&lease).HeldBy(Holder(f), now) {
				held = append(held, contract)
				break
			}
		}
	}
	return held, nil
}

// Waits reports whether a Feature waits for locks.
func Waits(f *v1alpha1.Feature) bool {
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionLocksHeld)
	return c != nil && c.Reason == v1alpha1.ReasonWaitingForLock && f.DeletionTimestamp == nil && !f.Spec.Suspend
}

// Names of the Leases that are the locks of a Feature's contracts.
func Names(f *v1alpha1.Feature) []string {
	var names []string
	for _, contract := range Contracts(f) {
		names = append(names, locks.Name(f.Spec.Repository.URL, contract))
	}
	return names
}

// waiters are the Features of all projects that wait for locks.
func waiters(ctx context.Context, reader client.Reader) ([]locks.Waiter, error) {
	var list v1alpha1.FeatureList
	// They are only looked at: a copy of every Feature would cost more than everything else.
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Features that wait for locks: %w", err)
	}
	var waiting []locks.Waiter
	for i := range list.Items {
		if f := &list.Items[i]; Waits(f) {
			waiting = append(waiting, waiter(f))
		}
	}
	return waiting, nil
}

func waiter(f *v1alpha1.Feature) locks.Waiter {
	return locks.Waiter{Holder: Holder(f), Priority: f.Spec.Priority, Since: f.CreationTimestamp.Time, Locks: Names(f)}
}
