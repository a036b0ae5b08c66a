// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"bytes"
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
)

// addFinalizer holds the Feature until its pods have ended in order.
func (r *Reconciler) addFinalizer(ctx context.Context, s *scope) error {
	f := s.feature
	if f.DeletionTimestamp != nil || controllerutil.ContainsFinalizer(f, v1alpha1.FinalizerFeature) {
		return nil
	}
	before := f.DeepCopy()
	controllerutil.AddFinalizer(f, v1alpha1.FinalizerFeature)
	if err := r.Client.Patch(ctx, f, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	r.fresh.Wrote(f.UID, f.ResourceVersion)
	return nil
}

// removeLeftover deletes Jobs and pods that must not be there, each by its uid.
func (r *Reconciler) removeLeftover(ctx context.Context, s *scope) error {
	for _, o := range s.decision.DeleteJobs {
		log.FromContext(ctx).Info("Deleting Job", "job", o.Name)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.feature.Namespace, Name: o.Name}}
		if err := r.remove(ctx, job, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	for _, o := range s.decision.DeletePods {
		log.FromContext(ctx).Info("Deleting pod", "pod", o.Name)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.feature.Namespace, Name: o.Name}}
		if err := r.remove(ctx, pod, o); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, o client.Object, which lifecycle.Object, opts ...client.DeleteOption) error {
	uid := types.UID(which.UID)
	opts = append(opts, client.Preconditions{UID: &uid})
	if err := r.Client.Delete(ctx, o, opts...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", o, which.Name, err)
	}
	return nil
}

// keepUp fixes what a running attempt rests on: without the network policy an agent could talk to anybody, and without
// the CA bundle the watchdog to nobody.
func (r *Reconciler) keepUp(ctx context.Context, s *scope) error {
	if !s.decision.KeepUp {
		return nil
	}
	var cached networkingv1.NetworkPolicy
	key := client.ObjectKey{Namespace: s.feature.Namespace, Name: naming.NetworkPolicy(s.feature.Name)}
	if err := r.Client.Get(ctx, key, &cached); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read NetworkPolicy %s: %w", key.Name, err)
	}
	spec, err := r.networkPolicySpec(s)
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(spec, cached.Spec) {
		if err := r.applyNetworkPolicy(ctx, s); err != nil {
			return err
		}
	}
	return r.applyCABundle(ctx, s.feature.Namespace)
}

func (r *Reconciler) networkPolicySpec(s *scope) (networkingv1.NetworkPolicySpec, error) {
	spec, err := as[networkingv1.NetworkPolicySpec](desired.NetworkPolicy(s.feature, r.SystemNamespace).Spec)
	if err != nil {
		return spec, fmt.Errorf("render NetworkPolicy: %w", err)
	}
	return spec, nil
}

func (r *Reconciler) applyNetworkPolicy(ctx context.Context, s *scope) error {
	spec, err := r.networkPolicySpec(s)
	if err != nil {
		return err
	}
	want := desired.NetworkPolicy(s.feature, r.SystemNamespace)
	is, made, err := own[networkingv1.NetworkPolicy](ctx, r, s, want)
	if err != nil || made || equality.Semantic.DeepEqual(spec, is.Spec) {
		return err
	}
	// Ours, and changed by somebody: exactly this one is put right.
	want = want.WithUID(is.UID).WithResourceVersion(is.ResourceVersion)
	if err := r.Client.Apply(ctx, want, fieldOwner, client.ForceOwnership); err != nil {
		return refusal(*want.GetKind(), is.Name, err)
	}
	return nil
}

// applyCABundle makes the project's bundle what it should be. While ours is not known, what is there stays.
func (r *Reconciler) applyCABundle(ctx context.Context, namespace string) error {
	bundle := r.CABundle.Bundle()
	if len(bundle) == 0 {
		return nil
	}
	var is corev1.ConfigMap
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: contract.CAConfigMap}, &is); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", contract.CAConfigMap, err)
	}
	if bytes.Equal([]byte(is.Data[contract.CAKey]), bundle) {
		return nil
	}
	if err := r.Client.Apply(ctx, desired.CABundle(namespace, bundle), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s: %w", contract.CAConfigMap, err)
	}
	return nil
}

// letGo removes the finalizer when no pod is left, or deletes a Feature whose time to live is over.
func (r *Reconciler) letGo(ctx context.Context, s *scope) error {
	f := s.feature
	switch {
	case s.decision.Release && controllerutil.ContainsFinalizer(f, v1alpha1.FinalizerFeature):
		s.gone = true
		before := f.DeepCopy()
		controllerutil.RemoveFinalizer(f, v1alpha1.FinalizerFeature)
		if err := r.Client.Patch(ctx, f, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
			return fmt.Errorf("remove finalizer: %w", err)
		}
		r.fresh.Forget(f.UID)
		r.begun.Delete(f.UID)
	case s.decision.Release:
		// Somebody else's finalizer holds it.
		s.gone = true
	case s.decision.DeleteFeature:
		s.gone = true
		log.FromContext(ctx).Info("Deleting Feature: its time to live is over")
		err := r.Client.Delete(ctx, f, client.Preconditions{UID: &f.UID, ResourceVersion: &f.ResourceVersion})
		if err != nil {
			return fmt.Errorf("delete Feature: %w", err)
		}
	}
	return nil
}
