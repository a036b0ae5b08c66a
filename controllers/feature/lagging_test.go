// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// frozen is a cache that shows one kind of object as it was once. What it shows as it is now stands for informers that do not lag.
type frozen struct {
	client.Client
	jobs *batchv1.JobList
	pods *corev1.PodList
	// leases are all of the system's namespace.
	leases *coordinationv1.LeaseList
}

func (c frozen) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	lease, ok := o.(*coordinationv1.Lease)
	if !ok || c.leases == nil {
		return c.Client.Get(ctx, key, o, opts...)
	}
	i := slices.IndexFunc(c.leases.Items, func(l coordinationv1.Lease) bool { return client.ObjectKeyFromObject(&l) == key })
	if i < 0 {
		return apierrors.NewNotFound(coordinationv1.Resource("leases"), key.Name)
	}
	c.leases.Items[i].DeepCopyInto(lease)
	return nil
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
			var o client.ListOptions
			o.ApplyOptions(opts)
			c.leases.DeepCopyInto(l)
			l.Items = slices.DeleteFunc(l.Items, func(lease coordinationv1.Lease) bool {
				return o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(lease.Labels))
			})
			return nil
		}
	}
	return c.Client.List(ctx, list, opts...)
}

// now is what a cache of each kind shows: the Jobs and the pods of the project, and all Leases.
func (r *harness) now() []frozen {
	r.Helper()
	jobs, pods, leases := &batchv1.JobList{}, &corev1.PodList{}, &coordinationv1.LeaseList{}
	r.must(r.user.List(r.Context(), jobs, client.InNamespace(r.project)), "list Jobs")
	r.must(r.user.List(r.Context(), pods, client.InNamespace(r.project)), "list pods")
	r.must(r.user.List(r.Context(), leases, client.InNamespace(kubetest.SystemNamespace)), "list Leases")
	return []frozen{{Client: r.manager, jobs: jobs}, {Client: r.manager, pods: pods}, {Client: r.manager, leases: leases}}
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

// leaseCache is a cache that shows Leases as they are now, and everything else as it will be.
func (r *harness) leaseCache() client.Client {
	r.Helper()
	return r.now()[2]
}

// TestLocksOnALaggingCache: a cache that shows the Lease of a contract as it was before somebody took it, before it was renewed, or before it was freed
// makes no second holder, takes no lock away from its holder, and keeps nobody waiting.
func TestLocksOnALaggingCache(t *testing.T) {
	r := newHarness(t)
	on := func(cache client.Client, names ...string) {
		r.Helper()
		defer func() { r.writes = r.manager }()
		r.writes = cache
		for range 3 {
			for _, name := range names {
				// A write that the API server refuses because the cache is old is tried again.
				if err := r.reconcile(name); err != nil && !apierrors.IsConflict(err) {
					r.Fatalf("reconcile %s on a cache that lags: %v", name, err)
				}
			}
		}
	}
	r.feature("first", wants("db"))
	r.feature("second", wants("db"))
	free := r.leaseCache()
	r.settle("first")
	held := r.leaseCache()

	on(free, "second", "first", "second")
	r.wantLocks("db first")
	r.wantJobs("twf-first-1")
	r.want("first", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.want("second", v1alpha1.PhasePending, v1alpha1.ReasonWaitingForLock)

	r.reportRunning("first")
	r.pass(locks.RenewAfter + time.Second)
	r.settle("first")
	renewed := r.leases()[0].Spec.RenewTime
	on(held, "first", "second")
	r.wantLocks("db first")
	if is := r.leases()[0].Spec.RenewTime; !is.Equal(renewed) {
		t.Errorf("an old Lease was written over a newer one: renewed at %s, and now at %s", renewed, is)
	}

	r.final("first", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle("first")
	on(held, "first", "second")
	r.want("first", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	r.wantLocks("db second") // who takes a lock asks the API server
	r.wantJobs("twf-first-1", "twf-second-1")
	on(free, "first")
	r.wantLocks("db second")
}
