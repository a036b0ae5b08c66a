// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leases keeps the locks of contracts as Leases in the system's namespace. There is one Lease for each contract of a repository,
// whatever the project of a Feature. Package core/locks decides. Every write here needs the version on which it decided.
package leases

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=tidewaiter-system,resources=leases,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=features,verbs=get;list;watch

// racePause is waited when another took a lock between our look and our write.
const racePause = time.Second

// Keeper looks at locks, takes, renews and frees them. All exported fields are required.
type Keeper struct {
	// Namespace of the Leases.
	Namespace string
	// Client reads from the cache, where who waits is looked up, and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader

	mu sync.Mutex
	// sightings are from when this process began: a Lease counts as expired only once it was seen unchanged for its time.
	sightings locks.Sightings
}

// Survey is the observed state of a Feature's locks at one time.
type Survey struct {
	// Wanted are the locks of the Feature's plan, sorted by contract.
	Wanted []locks.Wanted
	// Held are the Leases that name the Feature as holder, by contract.
	Held map[string]*coordinationv1.Lease
	// seen are the Leases of wanted locks that exist.
	seen map[string]*coordinationv1.Lease
}

// Contracts that a Feature's plan names, sorted, each once.
func Contracts(f *v1alpha1.Feature) []string {
	if f.Spec.Plan == nil {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(f.Spec.Plan.Contracts)))
}

// Holder is a Feature as the holder of its locks.
func Holder(f *v1alpha1.Feature) locks.Holder {
	return locks.Holder{Namespace: f.Namespace, Name: f.Name, UID: string(f.UID)}
}

// Look reads the state of a Feature's locks. A Feature without locks costs no call.
func (k *Keeper) Look(ctx context.Context, from client.Reader, f *v1alpha1.Feature, now time.Time) (Survey, error) {
	s := Survey{Held: map[string]*coordinationv1.Lease{}, seen: map[string]*coordinationv1.Lease{}}
	contracts := Contracts(f)
	if len(contracts)+len(f.Status.Locks) == 0 {
		return s, nil
	}
	var held coordinationv1.LeaseList
	err := from.List(ctx, &held, client.InNamespace(k.Namespace), client.MatchingLabels{v1alpha1.LabelLockHolder: string(f.UID)})
	if err != nil {
		return s, fmt.Errorf("list locks of Feature: %w", err)
	}
	for i := range held.Items {
		if l := &held.Items[i]; read(l).Holder == Holder(f) {
			s.Held[l.Annotations[v1alpha1.AnnotationContract]] = l
		}
	}
	for _, contract := range contracts {
		if err := k.survey(ctx, from, f, contract, now, &s); err != nil {
			return s, err
		}
	}
	return s, k.lineUp(ctx, f, &s)
}

// survey looks at one wanted lock.
func (k *Keeper) survey(ctx context.Context, from client.Reader, f *v1alpha1.Feature, contract string, now time.Time, s *Survey) error {
	name := locks.Name(f.Spec.Repository.URL, contract)
	lease := s.Held[contract]
	if lease == nil {
		lease = &coordinationv1.Lease{}
		err := from.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: name}, lease)
		if apierrors.IsNotFound(err) {
			s.Wanted = append(s.Wanted, locks.Wanted{Contract: contract, State: locks.Free})
			return nil
		}
		if err != nil {
			return fmt.Errorf("read lock of contract %s: %w", contract, err)
		}
	}
	s.seen[contract] = lease
	is := read(lease)
	k.mu.Lock()
	unchanged := k.sightings.Unchanged(name, is.Version, now)
	k.mu.Unlock()
	s.Wanted = append(s.Wanted, locks.Wanted{Contract: contract, State: is.State(Holder(f), unchanged, now), Holder: is.Holder})
	return nil
}

// lineUp notes who comes first for wanted locks that could be taken.
func (k *Keeper) lineUp(ctx context.Context, f *v1alpha1.Feature, s *Survey) error {
	could := func(w locks.Wanted) bool { return w.State == locks.Free || w.State == locks.Expired }
	if !slices.ContainsFunc(s.Wanted, could) {
		return nil
	}
	waiting, err := waiters(ctx, k.Client)
	if err != nil {
		return err
	}
	for i := range s.Wanted {
		w := &s.Wanted[i]
		if first, ok := locks.First(waiter(f), waiting, locks.Name(f.Spec.Repository.URL, w.Contract)); ok && could(*w) {
			w.Before, w.Holder = true, first.Holder
		}
	}
	return nil
}

// Take takes all locks that a Feature wants, or none if another Feature holds one of them. The result says which.
func (k *Keeper) Take(ctx context.Context, f *v1alpha1.Feature, now time.Time) (Survey, error) {
	s, err := k.Look(ctx, k.Live, f, now)
	if err != nil {
		return s, err
	}
	take, busy := locks.Choose(s.Wanted)
	if len(busy) > 0 {
		return s, nil
	}
	for _, w := range take {
		err := k.write(ctx, f, w, s.seen[w.Contract], now)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			return s, flow.Quietf(racePause, "another wrote the lock of contract %s first", w.Contract)
		}
		if err != nil {
			return s, fmt.Errorf("take lock of contract %s: %w", w.Contract, err)
		}
	}
	return k.Look(ctx, k.Live, f, now)
}

// write makes a Feature the holder of a lock, bound to the Lease that was seen; nil where there was none.
func (k *Keeper) write(ctx context.Context, f *v1alpha1.Feature, w locks.Wanted, seen *coordinationv1.Lease, now time.Time) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: locks.Name(f.Spec.Repository.URL, w.Contract)}}
	if seen != nil {
		lease = seen.DeepCopy()
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Labels[v1alpha1.LabelLock] = v1alpha1.LockContract
	lease.Labels[v1alpha1.LabelLockHolder] = string(f.UID)
	lease.Annotations[v1alpha1.AnnotationRepository] = locks.Repository(f.Spec.Repository.URL)
	lease.Annotations[v1alpha1.AnnotationContract] = w.Contract
	if w.State != locks.Mine {
		lease.Spec.AcquireTime = &metav1.MicroTime{Time: now}
		delete(lease.Annotations, v1alpha1.AnnotationReclaimedFrom)
	}
	if w.State == locks.Expired {
		lease.Annotations[v1alpha1.AnnotationReclaimedFrom] = read(lease).Holder.String()
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	lease.Spec.HolderIdentity = ptr.To(Holder(f).String())
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(locks.TTL / time.Second))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	if seen == nil {
		return k.Client.Create(ctx, lease)
	}
	return k.Client.Update(ctx, lease)
}

// Renew renews the held locks for which it is time.
func (k *Keeper) Renew(ctx context.Context, s Survey, now time.Time) error {
	for _, contract := range slices.Sorted(maps.Keys(s.Held)) {
		lease := s.Held[contract]
		if now.Before(read(lease).RenewedAt.Add(locks.RenewAfter)) {
			continue
		}
		lease = lease.DeepCopy()
		lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
		if err := k.Client.Update(ctx, lease); err != nil {
			return fmt.Errorf("renew lock of contract %s: %w", contract, err)
		}
	}
	return nil
}

// Free frees locks of a survey that was live.
func (k *Keeper) Free(ctx context.Context, s Survey, contracts []string) error {
	for _, contract := range contracts {
		lease := s.Held[contract]
		if lease == nil {
			continue
		}
		err := k.Client.Delete(ctx, lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("free lock of contract %s: %w", contract, err)
		}
	}
	return nil
}

// read is a Lease as core/locks decides on it.
func read(l *coordinationv1.Lease) locks.Lease {
	is := locks.Lease{Version: l.ResourceVersion, TTL: time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second}
	if l.Spec.RenewTime != nil {
		is.RenewedAt = l.Spec.RenewTime.Time
	}
	if holder := ptr.Deref(l.Spec.HolderIdentity, ""); holder != "" {
		is.Holder = locks.ParseHolder(holder)
	}
	return is
}
