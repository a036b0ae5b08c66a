// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
)

// checkFresh waits for the cache to show our own last write.
func (r *Reconciler) checkFresh(_ context.Context, s *scope) error {
	return r.process.fresh.Check(s.feature)
}

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
	r.process.fresh.Wrote(f.UID, f.ResourceVersion)
	return nil
}

// removeLeftover deletes Jobs and pods that must not be there.
func (r *Reconciler) removeLeftover(ctx context.Context, s *scope) error {
	return r.removeAll(ctx, s.feature.Namespace, s.decision.DeleteJobs, s.decision.DeletePods)
}

// removeAll deletes Jobs and pods, each by its uid.
func (r *Reconciler) removeAll(ctx context.Context, namespace string, jobs, pods []lifecycle.Object) error {
	for _, o := range jobs {
		log.FromContext(ctx).Info("Deleting Job", "job", o.Name)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.Name}}
		if err := r.remove(ctx, job, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	for _, o := range pods {
		log.FromContext(ctx).Info("Deleting pod", "pod", o.Name)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.Name}}
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

// releaseFinalizer removes the finalizer when no pod is left, or deletes a Feature whose time to live is over.
func (r *Reconciler) releaseFinalizer(ctx context.Context, s *scope) error {
	f := s.feature
	switch {
	case s.decision.Release && controllerutil.ContainsFinalizer(f, v1alpha1.FinalizerFeature):
		s.gone = true
		before := f.DeepCopy()
		controllerutil.RemoveFinalizer(f, v1alpha1.FinalizerFeature)
		if err := r.Client.Patch(ctx, f, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
			return fmt.Errorf("remove finalizer: %w", err)
		}
		r.process.fresh.Forget(f.UID)
		r.process.admission.forget(f)
	case s.decision.Release:
		// Another finalizer holds it.
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
