// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// SetupWithManager registers the controller and what wakes it: Features that come, go or change their labels.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("supervisorpolicy").
		For(&v1alpha1.SupervisorPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Feature{}, handler.EnqueueRequestsFromMapFunc(r.overFeature), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// overFeature are the policies that may apply to a Feature.
func (r *Reconciler) overFeature(ctx context.Context, o client.Object) []reconcile.Request {
	namespaces := []string{o.GetNamespace()}
	if o.GetNamespace() != r.SystemNamespace {
		namespaces = append(namespaces, r.SystemNamespace)
	}
	var requests []reconcile.Request
	for _, namespace := range namespaces {
		var list v1alpha1.SupervisorPolicyList
		if err := r.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			log.FromContext(ctx).Error(err, "Cannot list SupervisorPolicies", "namespace", namespace)
			continue
		}
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
