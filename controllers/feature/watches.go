// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

const (
	// indexState finds Features by what others can do for them.
	indexState = ".tidewaiter.state"
	// indexLocks finds Features by the Leases of the locks that they wait for.
	indexLocks = ".tidewaiter.locks"
	// stateActive has an attempt that has not ended: it depends on the CA bundle.
	stateActive = "active"
	// stateWaiting waits for room in its project.
	stateWaiting = "waiting"
	// stateWaitingForTurn waits for room in all projects together.
	stateWaitingForTurn = "waiting-for-turn"
	// stateWaitingForArea waits for others whose areas overlap with its own.
	stateWaitingForArea = "waiting-for-area"
	// stateWaitingForModel waits until the gateways have a model for it.
	stateWaitingForModel = "waiting-for-model"
	// stateOpen is not finished: its policy matters.
	stateOpen = "open"
)

// workers reconcile Features at a time. A reconcile is a handful of calls to the API server; the client's own rate
// limit is what bounds them.
const workers = 8

// SetupWithManager registers the controller and everything that wakes it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	wake := r.waker()
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Feature{}, indexState, states); err != nil {
		return fmt.Errorf("index Features by state: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Feature{}, indexLocks, awaitedLocks); err != nil {
		return fmt.Errorf("index Features by locks: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Feature{}, indexDelivered, deliveredTo); err != nil {
		return fmt.Errorf("index Features by what they have delivered to: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &networkingv1.NetworkPolicy{}, indexOpens, wake.opens); err != nil {
		return fmt.Errorf("index NetworkPolicies by what they open: %w", err)
	}
	bundles := make(chan event.GenericEvent, 1)
	r.CABundle.OnChange(func() {
		select {
		case bundles <- event.GenericEvent{Object: &v1alpha1.Feature{}}:
		default: // One is on its way: it will see this change too.
		}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("feature").
		For(&v1alpha1.Feature{}, builder.WithPredicates(featureChanged())).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(featureOfLabel), builder.WithPredicates(jobChanged())). // also one that has lost its owner
		Owns(&corev1.PersistentVolumeClaim{}, builder.WithPredicates(claimChanged())).
		Owns(&networkingv1.NetworkPolicy{}, builder.WithPredicates(changedByOthers())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(featureOfLabel), builder.WithPredicates(podChanged())).
		Watches(&batchv1.Job{}, wake.jobsOver()).
		Watches(&v1alpha1.Feature{}, wake.roomLeft()).
		Watches(&v1alpha1.Feature{}, wake.areasLeft()).
		Watches(&v1alpha1.Feature{}, wake.delivered()).
		Watches(&networkingv1.NetworkPolicy{}, wake.networksChanged()).
		Watches(&coordinationv1.Lease{}, wake.locksChanged()).
		Watches(&coordinationv1.Lease{}, wake.inForceChanged()).
		Watches(&v1alpha1.SupervisorPolicy{}, handler.EnqueueRequestsFromMapFunc(wake.underPolicy), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(wake.underNamespace), builder.WithPredicates(labelsChanged())).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(wake.trustingConfigMap), builder.WithPredicates(changedByOthers())).
		WatchesRawSource(source.Channel(bundles, handler.EnqueueRequestsFromMapFunc(wake.trustingAny))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r.overFeatures(mgr.GetClient()))
}

// waker knows which Features a change of something else wakes.
type waker struct {
	client          client.Reader
	systemNamespace string
	// base is what every network policy of a Feature allows.
	base *isolation.Policy
}

func (r *Reconciler) waker() waker {
	return waker{client: r.Client, systemNamespace: r.SystemNamespace, base: r.base()}
}

// states of a Feature that others look for.
func states(o client.Object) []string {
	f, ok := o.(*v1alpha1.Feature)
	if !ok {
		return nil
	}
	var list []string
	if f.Status.Job != nil && f.Status.Job.EndTime == nil {
		list = append(list, stateActive)
	}
	if observe.WaitsForRoom(f) {
		list = append(list, stateWaiting)
	}
	if observe.WaitsForTurn(f) {
		list = append(list, stateWaitingForTurn)
	}
	if waitsForModel(f) {
		list = append(list, stateWaitingForModel)
	}
	if observe.WaitsForArea(f) {
		list = append(list, stateWaitingForArea)
	}
	if f.Status.Phase != v1alpha1.PhaseDelivered {
		list = append(list, stateOpen)
	}
	return list
}

// waitsForModel reports whether a Feature may start when gateways have something else in force.
func waitsForModel(f *v1alpha1.Feature) bool {
	accepted := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionAccepted)
	succeeded := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded)
	return f.Status.Phase != v1alpha1.PhaseDelivered && (f.Status.Unserved != nil ||
		accepted != nil && accepted.Reason == v1alpha1.ReasonModelNotAvailable || succeeded != nil && succeeded.Reason == v1alpha1.ReasonSystemNotReady)
}

// featureOfLabel is the Feature that an object is labelled with.
func featureOfLabel(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[v1alpha1.LabelFeature]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// wakeFirst wakes the Feature that comes first among those that wait for room in a project, and the one whose turn it is among those that wait for room
// in all of them. Once it does not wait any more, the next one is woken by roomLeft: so many look as there is room for.
func (r waker) wakeFirst(ctx context.Context, o client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var first *v1alpha1.Feature
	waiting := r.find(ctx, o.GetNamespace(), indexState, stateWaiting)
	for i := range waiting {
		if f := &waiting[i]; first == nil || observe.Before(f, first) {
			first = f
		}
	}
	if first != nil {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(first)})
	}
	var all []*v1alpha1.Feature
	others := r.find(ctx, metav1.NamespaceAll, indexState, stateWaitingForTurn)
	for i := range others {
		all = append(all, &others[i])
	}
	if turns := observe.Turns(all); len(turns) > 0 {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(turns[0])})
	}
}

// roomLeft wakes the next Feature when one does not wait for room any more. Where one begins to wait, room may have come while it was
// decided that there is none. An agent that has not reported its end may work for its Feature's status still when its Job is over: who was woken then
// found no room.
func (r waker) roomLeft() handler.EventHandler {
	waits := func(o client.Object) string {
		f, ok := o.(*v1alpha1.Feature)
		switch {
		case ok && observe.WaitsForRoom(f):
			return stateWaiting
		case ok && observe.WaitsForTurn(f):
			return stateWaitingForTurn
		}
		return ""
	}
	works := func(o client.Object) bool {
		f, ok := o.(*v1alpha1.Feature)
		return ok && observe.AgentWorks(f)
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if waits(e.ObjectOld) != waits(e.ObjectNew) || works(e.ObjectOld) && !works(e.ObjectNew) {
				r.wakeFirst(ctx, e.ObjectNew, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if waits(e.Object) != "" {
				r.wakeFirst(ctx, e.Object, queue)
			}
		},
	}
}

// jobsOver wakes the Feature that may start now that a Job of its project is over, or gone.
func (r waker) jobsOver() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			was, okOld := e.ObjectOld.(*batchv1.Job)
			is, okNew := e.ObjectNew.(*batchv1.Job)
			if okOld && okNew && observe.JobEnded(is) && !observe.JobEnded(was) {
				r.wakeFirst(ctx, e.ObjectNew, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.wakeFirst(ctx, e.Object, queue)
		},
	}
}

// areasLeft wakes the Features that wait for others, when one is not at work any more or stops waiting before them.
func (r waker) areasLeft() handler.EventHandler {
	holds := func(o client.Object) bool {
		f, ok := o.(*v1alpha1.Feature)
		return ok && (observe.AtWork(f) || observe.WaitsForArea(f))
	}
	wake := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range r.in(ctx, "", stateWaitingForArea) {
			queue.Add(request)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if holds(e.ObjectOld) && !holds(e.ObjectNew) {
				wake(ctx, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if holds(e.Object) {
				wake(ctx, queue)
			}
		},
	}
}

// awaitedLocks of a Feature, by the names of their Leases.
func awaitedLocks(o client.Object) []string {
	if f, ok := o.(*v1alpha1.Feature); ok && leases.Waits(f) {
		return leases.Names(f)
	}
	return nil
}

// locksChanged wakes the Features that wait for a lock which got free, and the one that had it. Renewals wake none.
func (r waker) locksChanged() handler.EventHandler {
	wake := func(ctx context.Context, o client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		lease, ok := o.(*coordinationv1.Lease)
		if !ok || lease.Labels[v1alpha1.LabelLock] == "" {
			return
		}
		if had := locks.ParseHolder(ptr.Deref(lease.Spec.HolderIdentity, "")); had.Namespace != "" {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: had.Namespace, Name: had.Name}})
		}
		for _, request := range r.with(ctx, "", indexLocks, lease.Name) {
			queue.Add(request)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			was, okOld := e.ObjectOld.(*coordinationv1.Lease)
			is, okNew := e.ObjectNew.(*coordinationv1.Lease)
			if okOld && okNew && ptr.Deref(was.Spec.HolderIdentity, "") != ptr.Deref(is.Spec.HolderIdentity, "") {
				wake(ctx, e.ObjectOld, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, queue)
		},
	}
}

// underPolicy are the Features that a policy may apply to: those of its project, or all.
func (r waker) underPolicy(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetNamespace() == r.systemNamespace {
		return r.in(ctx, "", stateOpen)
	}
	return r.in(ctx, o.GetNamespace(), stateOpen)
}

// underNamespace are the Features that policies may select anew by the labels of their namespace.
func (r waker) underNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return r.in(ctx, o.GetName(), stateOpen)
}

// trustingConfigMap are the Features whose pods mount a bundle that was changed.
func (r waker) trustingConfigMap(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetName() != protocol.CAConfigMap {
		return nil
	}
	return r.in(ctx, o.GetNamespace(), stateActive)
}

// trustingAny are the Features of all projects whose pods mount the bundle.
func (r waker) trustingAny(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.in(ctx, "", stateActive)
}

// in lists the Features of a namespace ("" for all) that are in a state.
func (r waker) in(ctx context.Context, namespace, state string) []reconcile.Request {
	return r.with(ctx, namespace, indexState, state)
}

// with lists the Features of a namespace ("" for all) that an index has under a key.
func (r waker) with(ctx context.Context, namespace, index, key string) []reconcile.Request {
	var requests []reconcile.Request
	found := r.find(ctx, namespace, index, key)
	for i := range found {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found[i])})
	}
	return requests
}

// find gives the Features of a namespace ("" for all) that an index has under a key. They belong to the cache.
func (r waker) find(ctx context.Context, namespace, index, key string) []v1alpha1.Feature {
	var list v1alpha1.FeatureList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		// The cache does not fail once it is synced; what is missed here is looked at again by recheck.
		log.FromContext(ctx).Error(err, "Cannot list Features", "index", index, "key", key)
		return nil
	}
	return list.Items
}
