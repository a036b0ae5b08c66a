// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
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

// SetupWithManager registers the controller and what wakes it: Features that come, go or change their labels, and
// namespaces whose labels change.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("supervisorpolicy").
		For(&v1alpha1.SupervisorPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Feature{}, r.countLater(), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, r.countNamespaceLater(), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// countPause is how long the Features of a policy are left to come and go before they are counted again: the count is for
// people, and each is a list of all Features and a write.
const countPause = 5 * time.Second

// countLater wakes the policies that may apply to a Feature, each once for all Features that come and go within the pause.
func (r *Reconciler) countLater() handler.EventHandler {
	later := func(ctx context.Context, o client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range r.overFeature(ctx, o) {
			queue.AddAfter(request, countPause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.Object, queue)
		},
	}
}

// countNamespaceLater wakes the policies that select projects by the labels of their namespaces. Only changes of labels
// count: without Features a namespace has nothing to count, and these wake policies themselves.
func (r *Reconciler) countNamespaceLater() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			var list v1alpha1.SupervisorPolicyList
			if err := r.Client.List(ctx, &list, client.InNamespace(r.SystemNamespace)); err != nil {
				log.FromContext(ctx).Error(err, "Cannot list SupervisorPolicies", "namespace", r.SystemNamespace)
				return
			}
			for i := range list.Items {
				if list.Items[i].Spec.NamespaceSelector != nil {
					queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}, countPause)
				}
			}
		},
	}
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
