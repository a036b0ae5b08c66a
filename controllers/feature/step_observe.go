// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

const (
	// podPatience is how long a Job may take to make its pod before its events are asked why.
	podPatience = 10 * time.Second
	// stalePause is waited when the API server shows a newer Feature than the cache.
	stalePause = 200 * time.Millisecond
)

// observer finds out how things stand.
type observer struct {
	// client reads from the cache, live from the API server.
	client, live    client.Reader
	locks           *leases.Keeper
	networks        networkReader
	systemNamespace string
	process         *process
}

func (r *Reconciler) observer() observer {
	networks := networkReader{client: r.Client, live: r.Live, base: r.base(), listing: &r.process.listing}
	return observer{client: r.Client, live: r.Live, locks: r.Locks, networks: networks, systemNamespace: r.SystemNamespace, process: &r.process}
}

// observe finds out how things stand, from the cache.
func (r observer) observe(ctx context.Context, s *scope) error {
	if err := r.look(ctx, s, r.client, r.networks.cached); err != nil {
		return err
	}
	return r.remember(ctx, s, r.client)
}

// decide is pure: core/lifecycle decides on what was observed.
func decide(_ context.Context, s *scope) error {
	s.next()
	return nil
}

// readLive finds out how things stand, from the API server, for decisions that cannot be undone. Jobs and pods are read
// before the Feature: a final report is in the Feature before its pod ends, so that a pod which ended without one in
// this order never sent one.
func (r observer) readLive(ctx context.Context, s *scope) error {
	cached := s.feature
	if err := r.look(ctx, s, r.live, r.networks.fromServer); err != nil {
		return err
	}
	var live v1alpha1.Feature
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(cached), &live); err != nil {
		return fmt.Errorf("read Feature: %w", err)
	}
	if live.UID != cached.UID || live.Generation != cached.Generation || live.Status.Attempt != cached.Status.Attempt || podUID(&live) != podUID(cached) {
		// Policy, prompt, Jobs and pods were looked at for another state of it: a pod that was noted meanwhile may be newer than the list of
		// pods, and is not gone. Until the cache shows this one, there is nothing to
		// decide.
		r.process.fresh.Wrote(cached.UID, live.ResourceVersion)
		return flow.Quietf(stalePause, "the Feature changed while its Jobs were read")
	}
	s.feature = &live
	s.observed.Live = true
	return r.remember(ctx, s, r.live)
}

// podUID of the pod that speaks for the attempt; empty while none does.
func podUID(f *v1alpha1.Feature) string {
	if f.Status.Job == nil {
		return ""
	}
	return f.Status.Job.PodUID
}

// remember takes what the Feature's own status says, and compares its locks with the Leases. Those are read after it: a
// lock that the status names is there before and after, unless it was taken away.
func (r observer) remember(ctx context.Context, s *scope, from client.Reader) error {
	s.observed.Memory = features.Memory(s.feature.Status)
	s.observed.Run = features.Run(s.feature)
	if err := r.lookAtLocks(ctx, s, from); err != nil {
		return err
	}
	if err := r.lookAtDeliveries(ctx, s); err != nil {
		return err
	}
	if err := r.lookAtHeeds(ctx, s); err != nil {
		return err
	}
	return r.lookAtReplica(ctx, s)
}

// look finds out about everything but the Feature's own status. networks are the network policies as from shows them.
func (r observer) look(ctx context.Context, s *scope, from client.Reader, networks networkLister) error {
	f := s.feature
	inProject, ofFeature := client.InNamespace(f.Namespace), client.MatchingLabels{v1alpha1.LabelFeature: f.Name}
	var pods corev1.PodList
	var jobs batchv1.JobList
	var claims corev1.PersistentVolumeClaimList
	for _, list := range []client.ObjectList{&jobs, &pods, &claims} {
		if err := from.List(ctx, list, inProject, ofFeature); err != nil {
			return fmt.Errorf("list %T of Feature: %w", list, err)
		}
	}
	if strayPods(jobs.Items, pods.Items) {
		// Another leader may have made a Job between the two lists: its pod is none that lost its Job.
		if err := from.List(ctx, &jobs, inProject, ofFeature); err != nil {
			return fmt.Errorf("list %T of Feature again: %w", &jobs, err)
		}
	}
	o := lifecycle.Observed{
		Spec:            features.Spec(f, s.effective),
		Refusal:         s.refusal,
		Obstacle:        s.obstacle,
		Areas:           s.areas,
		Backends:        s.backends,
		Outage:          s.outage,
		PolicyConflicts: s.effective.Conflicts,
		Policy: lifecycle.PolicyRef{
			Hash: s.effective.Hash, Enforcement: string(s.effective.Enforcement), Sources: s.effective.Sources,
		},
		Jobs: observe.Jobs(f, jobs.Items),
		Pods: observe.Pods(pods.Items),
	}
	if s.active() && f.Status.Job.StartTime != nil {
		o.Volumes = observe.Volumes(claims.Items, f.Status.Job.StartTime.Time, s.now)
	}
	s.observed = o
	if err := r.networks.look(ctx, s, pods.Items, networks); err != nil {
		return err
	}
	if err := r.lookAtEvents(ctx, s); err != nil {
		return err
	}
	return r.lookAtProject(ctx, s)
}

// strayPods reports whether a pod belongs to a Job that is not in the list.
func strayPods(jobs []batchv1.Job, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		owner := metav1.GetControllerOf(&p)
		return owner != nil && !slices.ContainsFunc(jobs, func(j batchv1.Job) bool { return j.UID == owner.UID })
	})
}

// maxEvents of a Job are looked at. Its controller writes one for each different message; others may write more.
const maxEvents = 100

// lookAtEvents asks a Job without a pod why it has none: only its events say.
func (r observer) lookAtEvents(ctx context.Context, s *scope) error {
	for i := range s.observed.Jobs {
		j := &s.observed.Jobs[i]
		if j.Ended || j.Attempt != s.feature.Status.Attempt || len(s.observed.Pods) > 0 || s.now.Sub(j.Created) < podPatience {
			continue
		}
		var list corev1.EventList
		err := r.live.List(ctx, &list, client.InNamespace(s.feature.Namespace),
			client.MatchingFields{"involvedObject.uid": j.UID, "reason": "FailedCreate"}, client.Limit(maxEvents))
		if err != nil {
			return fmt.Errorf("list events of Job %s: %w", j.Name, err)
		}
		j.Rejected = observe.Rejected(list.Items)
	}
	return nil
}

// lookAtReplica takes a connection for broken when the replica that holds it died, because only that replica could say so. It broke when
// the replica gave its last sign of life, and not before this process could have seen it: watchdogs that are on their way
// to another replica, as at each rollout of the manager, get as much time as after any other break.
func (r observer) lookAtReplica(ctx context.Context, s *scope) error {
	run, first := s.feature.Status.Run, r.firstLook(s.now)
	if !s.active() || run == nil || !s.observed.Run.Connected || run.Replica == "" {
		return nil
	}
	lease, err := r.replicaLease(ctx, run.Replica)
	if err != nil {
		return err
	}
	if lost, ok := r.process.replicas.lost(run.Replica, lease, s.now); ok {
		s.observed.Run.Connected = false
		s.observed.Run.ConnectionChangedAt = latest(s.observed.Run.ConnectionChangedAt, lost, first)
	}
	return nil
}

// replicaLease is the Lease of a replica, nil where there is none. One that the cache does not show may be new.
func (r observer) replicaLease(ctx context.Context, replica string) (*coordinationv1.Lease, error) {
	key := client.ObjectKey{Namespace: r.systemNamespace, Name: replica}
	for _, reader := range []client.Reader{r.client, r.live} {
		var lease coordinationv1.Lease
		err := reader.Get(ctx, key, &lease)
		if err == nil {
			return &lease, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read Lease of replica %s: %w", replica, err)
		}
	}
	return nil, nil
}

// firstLook is when this process began to reconcile.
func (r observer) firstLook(now time.Time) time.Time {
	r.process.began.Do(func() { r.process.since = now })
	return r.process.since
}

func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// replicas remembers since when the Leases of replicas are gone. The zero value is ready.
type replicas struct {
	mu   sync.Mutex
	gone map[string]time.Time
}

// lost says since when a replica vouches for nothing any more, where that is so.
func (m *replicas) lost(replica string, lease *coordinationv1.Lease, now time.Time) (since time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lease != nil {
		delete(m.gone, replica)
		if !observe.Expired(lease, now) {
			return time.Time{}, false
		}
		if lease.Spec.RenewTime != nil {
			since = lease.Spec.RenewTime.Time
		}
		return since, true
	}
	since, known := m.gone[replica]
	if !known {
		if m.gone == nil {
			m.gone = map[string]time.Time{}
		}
		since = now
		m.gone[replica] = now
	}
	return since, true
}

// lookAtProject counts the agents of the project, and of all projects, where a policy limits them and this Feature may want to start one: from the cache, and those that this
// process has admitted and the cache does not show.
func (r observer) lookAtProject(ctx context.Context, s *scope) error {
	limit, total := s.effective.MaxRunning, s.effective.MaxRunningTotal
	if limit == 0 && total == 0 || s.active() {
		return nil
	}
	where := client.InNamespace(s.feature.Namespace)
	if total > 0 {
		where = client.InNamespace(metav1.NamespaceAll)
	}
	var features v1alpha1.FeatureList
	// They are only looked at: a copy of each Feature would cost more than everything else.
	if err := r.client.List(ctx, &features, where, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Features to count agents: %w", err)
	}
	var jobs batchv1.JobList
	err := r.client.List(ctx, &jobs, where, client.MatchingLabels{v1alpha1.LabelRun: v1alpha1.RunAgent}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list Jobs to count agents: %w", err)
	}
	s.observed.Capacity = observe.Capacity(s.feature, features.Items, jobs.Items, r.process.admission.has, limit, total)
	return nil
}
