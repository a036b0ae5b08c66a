// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

const (
	// LabelReplica marks the Leases of manager replicas.
	LabelReplica = "tidewaiter.dev/replica"
	// LeaseDuration is how long a replica that does not renew its Lease still vouches for its connections.
	LeaseDuration = 30 * time.Second
	// leaseRenewal is how often it is renewed.
	leaseRenewal = 10 * time.Second
	// leaseForgotten is the age at which the Lease of a replica that died is removed.
	leaseForgotten = time.Hour
	// leaseRelease bounds the removal of the own Lease at an orderly end.
	leaseRelease = 5 * time.Second
)

// Lease says that this replica is running: a Feature whose status.run names the replica is connected as long as it is. Without it nobody
// could distinguish an open poll from one that ended with its replica.
type Lease struct {
	// Live reads and writes without a cache.
	Live      client.Client
	Namespace string
	// Replica is the Lease's name.
	Replica string
	Clock   clock.Clock
	Logger  logr.Logger
}

// NeedLeaderElection is false: every replica has its own.
func (l *Lease) NeedLeaderElection() bool { return false }

// Start renews the Lease until the context ends, and then removes it.
func (l *Lease) Start(ctx context.Context) error {
	if err := l.sweep(ctx); err != nil {
		l.Logger.Error(err, "Cannot remove Leases of replicas that died")
	}
	for {
		if err := l.renew(ctx); err != nil && ctx.Err() == nil {
			l.Logger.Error(err, "Cannot renew this replica's Lease")
		}
		timer := l.Clock.NewTimer(leaseRenewal)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return l.release(ctx)
		}
	}
}

func (l *Lease) renew(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := l.Live.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: l.Replica}, lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read lease: %w", err)
	}
	now := metav1.NewMicroTime(l.Clock.Now())
	lease.Spec.HolderIdentity = ptr.To(l.Replica)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(LeaseDuration / time.Second))
	lease.Spec.RenewTime = &now
	if apierrors.IsNotFound(err) {
		lease.Namespace, lease.Name = l.Namespace, l.Replica
		lease.Labels = map[string]string{LabelReplica: "manager"}
		lease.Spec.AcquireTime = &now
		err = l.Live.Create(ctx, lease)
	} else {
		err = l.Live.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	return nil
}

// release removes the Lease: the connections of this replica are over, and known to be.
func (l *Lease) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseRelease)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Replica}}
	if err := l.Live.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release this replica's lease: %w", err)
	}
	return nil
}

// sweep removes what replicas left behind that had no time to release their Lease, or those of inquiries.
func (l *Lease) sweep(ctx context.Context) error {
	return errors.Join(l.sweepMarked(ctx, LabelReplica), l.sweepMarked(ctx, v1alpha1.LabelInquiry))
}

func (l *Lease) sweepMarked(ctx context.Context, label string) error {
	leases := &coordinationv1.LeaseList{}
	if err := l.Live.List(ctx, leases, client.InNamespace(l.Namespace), client.HasLabels{label}); err != nil {
		return fmt.Errorf("list leases: %w", err)
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if lease.Spec.RenewTime != nil && l.Clock.Since(lease.Spec.RenewTime.Time) < leaseForgotten {
			continue
		}
		if err := l.Live.Delete(ctx, lease, client.Preconditions{ResourceVersion: &lease.ResourceVersion}); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("remove lease %s: %w", lease.Name, err)
		}
	}
	return nil
}
