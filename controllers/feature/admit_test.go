// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// slowJob is an API server that takes its time with one Job, and refuses it then.
type slowJob struct {
	client.Client
	job        string
	asked, end chan struct{}
}

func (c slowJob) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if _, is := o.(*batchv1.Job); is && o.GetName() == c.job {
		select {
		case c.asked <- struct{}{}:
		default: // it is asked once more
		}
		<-c.end
		return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, c.job, nil)
	}
	return c.Client.Create(ctx, o, opts...)
}

// TestASlowStartDelaysNobodyElse: while the API server takes its time with the Job of one Feature, one of another project starts, and one of the
// same project counts it. A Feature that could not start after all gives its place back.
func TestASlowStartDelaysNobodyElse(t *testing.T) {
	r, other := newHarness(t), newHarness(t)
	for _, h := range []*harness{r, other} {
		h.policy("one", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Capacity: &v1alpha1.CapacityRules{MaxRunning: ptr.To[int32](1)}}})
	}
	slow := slowJob{manager, "twf-first-1", make(chan struct{}, 1), make(chan struct{})}
	r.writes = slow
	c := r.reconciler()
	pass := func(h *harness, name string) {
		for range 6 {
			_, err := c.overFeatures(manager).Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: h.project, Name: name}})
			if err != nil && !apierrors.IsConflict(err) {
				t.Errorf("reconcile %s: %v", name, err)
			}
		}
	}
	r.feature("first", nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		pass(r, "first")
	}()
	<-slow.asked
	r.feature("second", nil)
	pass(r, "second")
	r.want("second", v1alpha1.PhasePending, v1alpha1.ReasonAtCapacity)
	r.wantJobs()
	other.feature("third", nil)
	pass(other, "third")
	other.wantJobs("twf-third-1")
	r.writes = manager
	close(slow.end)
	<-done
	r.want("first", v1alpha1.PhasePending, v1alpha1.ReasonObjectRejected)
	pass(r, "second")
	r.wantJobs("twf-second-1")
}

// waitingFeatures stands for the cache.
type waitingFeatures struct {
	client.Reader
	list []v1alpha1.Feature
}

func (c waitingFeatures) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	for _, f := range c.list {
		if state, _ := options.FieldSelector.RequiresExactMatch(indexState); (options.Namespace == "" || f.Namespace == options.Namespace) && slices.Contains(states(&f), state) {
			features := list.(*v1alpha1.FeatureList)
			features.Items = append(features.Items, f)
		}
	}
	return nil
}

// woken are the names of Features that were woken.
type woken struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	names []string
}

func (w *woken) Add(r reconcile.Request) { w.names = append(w.names, r.Name) }

// TestTheFirstIsWoken: one end of a Job wakes the Feature that comes first. The next one is woken when that does not wait any more.
func TestTheFirstIsWoken(t *testing.T) {
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	waiting := func(namespace, name string, priority int32, age time.Duration) v1alpha1.Feature {
		f := v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), CreationTimestamp: metav1.NewTime(noon.Add(-age))}}
		f.Spec.Priority = priority
		f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonAtCapacity}}
		return f
	}
	suspended := waiting("shop", "suspended", 9, 0)
	suspended.Spec.Suspend = true
	list := []v1alpha1.Feature{waiting("shop", "young", 0, 0), waiting("shop", "old", 0, time.Hour), waiting("shop", "urgent", 1, 0), suspended, waiting("bank", "other", 9, 0)}
	r, later := waker{client: waitingFeatures{list: list}}, waker{client: waitingFeatures{list: slices.Delete(slices.Clone(list), 2, 3)}}
	starts := list[2].DeepCopy()
	starts.Status.Conditions[0].Reason = v1alpha1.ReasonPreparing
	ended := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	over := ended.DeepCopy()
	over.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
	turn := waiting("bank", "turn", 0, time.Hour)
	turn.Status.Conditions[0].Reason = v1alpha1.ReasonAtTotalCapacity
	next := turn.DeepCopy()
	next.Name, next.Spec.Priority, next.CreationTimestamp = "next", 9, metav1.NewTime(noon)
	total := waker{client: waitingFeatures{list: []v1alpha1.Feature{list[1], turn, *next}}}
	room := list[1].DeepCopy()
	room.Status.Conditions[0].Reason = v1alpha1.ReasonAtTotalCapacity
	works := starts.DeepCopy()
	works.Status.Job = &v1alpha1.JobStatus{Run: v1alpha1.RunKindAgent}
	ends := works.DeepCopy()
	ends.Status.Job.EndTime = &metav1.Time{Time: noon}
	for name, tc := range map[string]struct {
		happens func(*woken)
		want    []string
	}{
		"a Job ends where others wait for their turn": {func(w *woken) {
			total.jobsOver().Update(t.Context(), event.UpdateEvent{ObjectOld: ended, ObjectNew: over}, w)
		}, []string{"old", "next"}},
		"one has room only in its project": {func(w *woken) {
			total.roomLeft().Update(t.Context(), event.UpdateEvent{ObjectOld: &list[1], ObjectNew: room}, w)
		}, []string{"old", "next"}},
		"a Job ends": {func(w *woken) {
			r.jobsOver().Update(t.Context(), event.UpdateEvent{ObjectOld: ended, ObjectNew: over}, w)
		}, []string{"urgent"}},
		"a Job is touched": {func(w *woken) {
			r.jobsOver().Update(t.Context(), event.UpdateEvent{ObjectOld: over, ObjectNew: over}, w)
		}, nil},
		"a Job goes": {func(w *woken) { r.jobsOver().Delete(t.Context(), event.DeleteEvent{Object: over}, w) }, []string{"urgent"}},
		"the first starts": {func(w *woken) {
			later.roomLeft().Update(t.Context(), event.UpdateEvent{ObjectOld: &list[2], ObjectNew: starts}, w)
		}, []string{"old"}},
		"one waits on": {func(w *woken) {
			r.roomLeft().Update(t.Context(), event.UpdateEvent{ObjectOld: &list[0], ObjectNew: &list[0]}, w)
		}, nil},
		"one begins to wait": {func(w *woken) {
			r.roomLeft().Update(t.Context(), event.UpdateEvent{ObjectOld: starts, ObjectNew: &list[2]}, w)
		}, []string{"urgent"}},
		"an agent is over whose Job was over before": {func(w *woken) {
			r.roomLeft().Update(t.Context(), event.UpdateEvent{ObjectOld: works, ObjectNew: ends}, w)
		}, []string{"urgent"}},
		"an agent works on": {func(w *woken) {
			r.roomLeft().Update(t.Context(), event.UpdateEvent{ObjectOld: works, ObjectNew: works}, w)
		}, nil},
		"the first is deleted": {func(w *woken) { later.roomLeft().Delete(t.Context(), event.DeleteEvent{Object: &list[2]}, w) }, []string{"old"}},
	} {
		var w woken
		if tc.happens(&w); !slices.Equal(w.names, tc.want) {
			t.Errorf("%s: %q are woken, want %q", name, w.names, tc.want)
		}
	}
}
