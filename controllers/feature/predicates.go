// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"maps"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

// What a decision rests on is what wakes a Feature: an event that shows nothing else would be one more look that finds
// nothing. What a manager that starts must know comes with the Features themselves, each of which it looks at once.

// featureChanged lets a Feature through when its spec, its labels (policies select by them), its deletion or something
// that a decision rests on has changed. What this controller writes for people alone wakes nothing.
func featureChanged() predicate.Predicate {
	return changed(func(was, is *v1alpha1.Feature) bool {
		guarded := func(f *v1alpha1.Feature) bool { return controllerutil.ContainsFinalizer(f, v1alpha1.FinalizerFeature) }
		return was.Generation != is.Generation || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
			was.UID != is.UID || guarded(was) && !guarded(is) ||
			!equality.Semantic.DeepEqual(was.Labels, is.Labels) || !reflect.DeepEqual(essence(was), essence(is))
	})
}

// facts are the parts of a status that decisions rest on.
type facts struct {
	Memory  lifecycle.Memory
	Run     *lifecycle.Run
	Replica string
}

func essence(f *v1alpha1.Feature) facts {
	e := facts{Memory: features.Memory(f.Status), Run: features.Run(f)}
	if f.Status.Run != nil {
		e.Replica = f.Status.Run.Replica
	}
	m := &e.Memory
	// For people and tools: each follows from what is compared.
	m.Conditions, m.ObservedGeneration, m.Policy = nil, 0, lifecycle.PolicyRef{}
	m.Branch, m.Head, m.LastCheckpoint, m.LastValidCheckpoint, m.Checkpoints, m.Rollbacks = "", "", "", "", lifecycle.Counts{}, lifecycle.Rollbacks{}
	return e
}

// jobChanged lets a Job through when it ended, or goes, or is not what it was labelled as.
func jobChanged() predicate.Predicate {
	return madeByUs(func(was, is *batchv1.Job) bool {
		return observe.JobEnded(was) != observe.JobEnded(is) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(was.Labels, is.Labels)
	})
}

// claimChanged lets a claim through when it is bound, is lost or goes.
func claimChanged() predicate.Predicate {
	return madeByUs(func(was, is *corev1.PersistentVolumeClaim) bool {
		return was.Status.Phase != is.Status.Phase || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero()
	})
}

// podChanged lets a pod through when it is seen differently: the kubelet writes much more of it than matters here.
func podChanged() predicate.Predicate {
	return changed(func(was, is *corev1.Pod) bool {
		return !reflect.DeepEqual(observe.Pods([]corev1.Pod{*was}), observe.Pods([]corev1.Pod{*is}))
	})
}

// changedByOthers lets objects through that were changed or removed.
func changedByOthers() predicate.Predicate {
	return madeByUs(func(was, is client.Object) bool { return was.GetResourceVersion() != is.GetResourceVersion() })
}

// labelsChanged lets an object through when its labels have changed. That it is there, or gone, is no news.
func labelsChanged() predicate.Predicate {
	p := madeByUs(func(was, is client.Object) bool { return !maps.Equal(was.GetLabels(), is.GetLabels()) })
	p.DeleteFunc = func(event.DeleteEvent) bool { return false }
	return p
}

// changed lets updates through that differ, and every other event.
func changed[T client.Object](differ func(was, is T) bool) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, okOld := e.ObjectOld.(T)
		is, okNew := e.ObjectNew.(T)
		return !okOld || !okNew || differ(was, is)
	}}
}

// madeByUs is changed for objects that only this controller makes: that one is there is no news.
func madeByUs[T client.Object](differ func(was, is T) bool) predicate.Funcs {
	p := changed(differ)
	p.CreateFunc = func(event.CreateEvent) bool { return false }
	return p
}
