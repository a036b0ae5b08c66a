// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// frozen is a cache that shows one kind of object as it was once. What it shows as it is now stands for informers that do not lag.
type frozen struct {
	client.Client
	jobs   *batchv1.JobList
	pods   *corev1.PodList
	leases *coordinationv1.LeaseList
}

func (c frozen) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch l := list.(type) {
	case *batchv1.JobList:
		if c.jobs != nil {
			c.jobs.DeepCopyInto(l)
			return nil
		}
	case *corev1.PodList:
		if c.pods != nil {
			c.pods.DeepCopyInto(l)
			return nil
		}
	case *coordinationv1.LeaseList:
		if c.leases != nil {
			c.leases.DeepCopyInto(l)
			return nil
		}
	}
	return c.Client.List(ctx, list, opts...)
}

// now is what a cache of each kind shows of Feature login.
func (r *harness) now() []frozen {
	r.Helper()
	jobs, pods, locks := &batchv1.JobList{}, &corev1.PodList{}, &coordinationv1.LeaseList{}
	r.must(r.user.List(r.Context(), jobs, client.InNamespace(r.project)), "list Jobs")
	r.must(r.user.List(r.Context(), pods, client.InNamespace(r.project)), "list pods")
	r.must(r.user.List(r.Context(), locks, client.MatchingLabels{v1alpha1.LabelLockHolder: string(r.get("login").UID)}), "list Leases")
	return []frozen{{Client: r.manager, jobs: jobs}, {Client: r.manager, pods: pods}, {Client: r.manager, leases: locks}}
}

// TestLaggingKinds lets the controller see Jobs, pods or Leases as they were at the last moments of a whole life, while everything else is
// as it is now: there is no second Job and no second pod, no agent is said to have ended that works, and the life ends as an
// undisturbed one.
func TestLaggingKinds(t *testing.T) {
	undisturbed := newHarness(t)
	want := live(undisturbed, func() { undisturbed.settle("login") })
	r := newHarness(t)
	var past []frozen
	got := live(r, func() {
		for _, cache := range past[max(len(past)-9, 0):] {
			r.writes = cache
			r.must(r.reconcile("login"), "reconcile on a cache that lags")
			r.writes = r.manager
			r.makePods()
			if jobs, pods := r.jobs(), r.pods(); len(jobs) > 1 || len(pods) > 1 {
				r.Fatalf("%d Jobs and %d pods", len(jobs), len(pods))
			}
			f := r.get("login")
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionAgentRunning)
			works := f.Status.Run != nil && f.Status.Run.Final == nil && len(r.pods()) == 1
			if works && c != nil && slices.Contains([]string{"AgentExited", "NotRunning"}, c.Reason) {
				r.Errorf("an agent that works is said to be %s: %s", c.Reason, c.Message)
			}
		}
		past = append(past, r.now()...)
		r.settle("login")
		past = append(past, r.now()...)
	})
	if got != want {
		t.Errorf("the end differs; undisturbed:\n%s\nwith caches that lag:\n%s", want, got)
	}
}
