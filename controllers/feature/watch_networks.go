// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/internal/kube/networkpolicy"
)

// opens says of a network policy whether it opens anything.
func (r waker) opens(o client.Object) []string {
	p, ok := o.(*networkingv1.NetworkPolicy)
	if !ok {
		return nil
	}
	if read := networkpolicy.Values(p); len(read.Opens(r.base)) == 0 {
		return nil
	}
	return []string{opensYes}
}

// networksChanged wakes the Features of a project when a network policy begins or ceases to open something, or to select
// something else. Others wake none.
func (r waker) networksChanged() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, o client.Object, q queue) {
		for _, request := range r.in(ctx, o.GetNamespace(), stateOpen) {
			q.AddAfter(request, networkPause)
		}
	}
	opens := func(o client.Object) bool { return len(r.opens(o)) > 0 }
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if opens(e.Object) {
				wake(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, okOld := e.ObjectOld.(*networkingv1.NetworkPolicy)
			is, okNew := e.ObjectNew.(*networkingv1.NetworkPolicy)
			if okOld && okNew && (opens(was) || opens(is)) && !equality.Semantic.DeepEqual(was.Spec, is.Spec) {
				wake(ctx, is, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if opens(e.Object) {
				wake(ctx, e.Object, q)
			}
		},
	}
}
