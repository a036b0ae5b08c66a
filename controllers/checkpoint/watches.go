// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// SetupWithManager registers the controller and what wakes it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("checkpoint").
		For(&v1alpha1.Checkpoint{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.ofLabel), builder.WithPredicates(claimChanged())).
		Watches(&v1alpha1.Feature{}, handler.EnqueueRequestsFromMapFunc(r.ofFeature), builder.WithPredicates(attemptChanged())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// claimChanged lets a claim through when it goes or is lost: nothing else about it matters to a Checkpoint.
func claimChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			is, ok := e.ObjectNew.(*corev1.PersistentVolumeClaim)
			return ok && (is.DeletionTimestamp != nil || is.Status.Phase == corev1.ClaimLost)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

// attemptChanged lets a Feature through when an attempt ended or another began: ephemeral volumes went with it.
func attemptChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, okOld := e.ObjectOld.(*v1alpha1.Feature)
			is, okNew := e.ObjectNew.(*v1alpha1.Feature)
			return okOld && okNew && (was.Status.Attempt != is.Status.Attempt || ended(was) != ended(is))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false }, // Checkpoints go with their Feature.
	}
}

func ended(f *v1alpha1.Feature) bool { return f.Status.Job != nil && f.Status.Job.EndTime != nil }

func (r *Reconciler) ofLabel(ctx context.Context, o client.Object) []reconcile.Request {
	return r.of(ctx, o.GetNamespace(), o.GetLabels()[v1alpha1.LabelFeature])
}

func (r *Reconciler) ofFeature(ctx context.Context, o client.Object) []reconcile.Request {
	return r.of(ctx, o.GetNamespace(), o.GetName())
}

// of lists the Checkpoints of a Feature.
func (r *Reconciler) of(ctx context.Context, namespace, feature string) []reconcile.Request {
	if feature == "" {
		return nil
	}
	var list v1alpha1.CheckpointList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelFeature: feature}); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list Checkpoints", "feature", feature)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
