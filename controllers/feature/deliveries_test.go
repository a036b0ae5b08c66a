// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
)

// delivers some paths.
func (r *harness) delivers(name string, paths ...string) {
	r.Helper()
	r.final(name, protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.report(name, func(run *applyv1alpha1.RunStatusApplyConfiguration) {
		run.WithFinal(applyv1alpha1.FinalReport().WithEpoch(r.get(name).Status.Attempt).WithOutcome(protocol.OutcomeDelivered).WithReason(protocol.ReasonDelivered).
			WithHead(head).WithPaths(paths...).WithPathCount(int64(len(paths))))
	})
}

// told is what the agent of a Feature is told of deliveries, under a policy.
func (r *harness) told(name string, how policy.Deliveries) (ids []string) {
	effective := policy.Effective{Concurrency: policy.Concurrency{Deliveries: how}}
	for _, d := range features.Orders(r.get(name), effective, "", nil).Directives {
		ids = append(ids, d.ID)
	}
	return ids
}

// TestADeliveryConcernsOthers: a Feature at work on what another one of the project has delivered has a condition that names commit and paths,
// and its agent is told as the policy says. It stays, also when who delivered is gone, and in later attempts.
func TestADeliveryConcernsOthers(t *testing.T) {
	r := newHarness(t)
	r.feature("first", within("web/**"))
	r.feature("second", within("api/**", "web/login/**"))
	r.feature("third", within("docs/**"))
	r.feature("elsewhere", func(f *v1alpha1.Feature) { f.Spec.Repository.URL = "https://git.example.com/other.git" })
	r.settle("first", "second", "third", "elsewhere")
	for _, name := range []string{"second", "third", "elsewhere"} {
		r.reportRunning(name)
	}
	r.pass(time.Minute)
	r.delivers("first", "web/index.html", "web/login/form.html")
	r.settle("first", "second", "third", "elsewhere")
	m := r.wantCondition("second", v1alpha1.ConditionDeliveriesDisjoint, metav1.ConditionFalse, v1alpha1.ReasonDeliveryTouches)
	if want := "Feature first has delivered commit " + head[:12] + ` on branch tidewaiter/first of this repository, which changes "web/login/form.html" (area web/login/**).`; m != want {
		t.Errorf("the message is %q, want %q", m, want)
	}
	for _, name := range []string{"first", "third", "elsewhere"} {
		if c := meta.FindStatusCondition(r.get(name).Status.Conditions, v1alpha1.ConditionDeliveriesDisjoint); c != nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if told := r.told("second", policy.DeliveriesMessage); len(told) != 1 || told[0] != "delivered/first" {
		t.Errorf("the agent is told %q", told)
	}
	if told := r.told("second", policy.DeliveriesCondition); len(told) != 0 {
		t.Errorf("the agent is told %q", told)
	}
	if events := strings.Join(r.events(), "\n"); strings.Count(events, v1alpha1.ReasonDeliveryTouches) != 1 {
		t.Errorf("events: %s", events)
	}
	r.must(r.user.Delete(r.Context(), r.get("first")), "delete the Feature that has delivered")
	all := []string{"first", "second", "third", "elsewhere"}
	r.settle(all...)
	r.final("second", protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "")
	r.settle(all...)
	r.pass(10 * time.Minute)
	r.settle(all...)
	if f := r.get("second"); f.Status.Attempt != 2 || len(f.Status.Deliveries) != 1 {
		t.Errorf("attempt %d: %+v", f.Status.Attempt, f.Status.Deliveries)
	}
	// Who begins after a delivery is not told of it.
	r.feature("fourth", within("web/**"))
	r.settle(append(all, "fourth")...)
	if f := r.get("fourth"); len(f.Status.Deliveries) != 0 {
		t.Errorf("%+v", f.Status.Deliveries)
	}
}

// TestDeliveriesOff: a project may say that no one is told.
func TestDeliveriesOff(t *testing.T) {
	r := newHarness(t)
	r.policy("deliveries", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Concurrency: &v1alpha1.ConcurrencyRules{OnDelivery: v1alpha1.DeliveryNoticeOff}}})
	r.feature("first", within("web/**"))
	r.feature("second", within("web/**"))
	r.settle("first", "second")
	r.reportRunning("second")
	r.delivers("first", "web/index.html")
	r.settle("first", "second")
	if f := r.get("second"); len(f.Status.Deliveries) != 0 {
		t.Errorf("%+v", f.Status.Deliveries)
	}
}

// TestDeliveriesAreFoundByDay: those of long ago are not listed again and again; those of each day since a Feature began are, today's too.
func TestDeliveriesAreFoundByDay(t *testing.T) {
	r := newHarness(t)
	all := []string{"second", "early", "late"}
	for _, name := range all {
		r.feature(name, within("web/**"))
	}
	r.settle(all...)
	for i, name := range all[1:] {
		r.pass(time.Duration(2*i+1) * 24 * time.Hour)
		r.delivers(name, "web/"+name+".html")
		r.settle(all...)
	}
	r.settle(all...)
	if f := r.get("second"); len(f.Status.Deliveries) != 2 || f.Status.Deliveries[1].Feature != "late" {
		t.Errorf("%+v", f.Status.Deliveries)
	}
	if early, late := deliveredTo(r.get("early")), deliveredTo(r.get("late")); len(early) != 1 || len(late) != 1 || early[0] == late[0] {
		t.Errorf("found under %q and %q", early, late)
	}
}

// TestADeliveryIsWrittenWhereItConcerns: of all Features of a crowd, one delivery writes the status of those whose agents are at work on what it touches, once.
// Who works elsewhere, waits to begin, has ended or is about to end is not written.
func TestADeliveryIsWrittenWhereItConcerns(t *testing.T) {
	r := newHarness(t)
	r.policy("crowd", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Capacity: &v1alpha1.CapacityRules{MaxRunning: ptr.To[int32](20)}}})
	for name, areas := range map[string]string{"first": "web/**", "second": "lib/**", "concerned": "web/**", "unconcerned": "docs/**", "blocked": "web/**", "failed": "web/**", "ending": "web/**", "done": "web/**"} {
		r.feature(name, within(areas))
	}
	r.feature("elsewhere", func(f *v1alpha1.Feature) { f.Spec.Repository.URL = "https://git.example.com/other.git" })
	r.feature("suspended", func(f *v1alpha1.Feature) { f.Spec.Suspend = true })
	crowd := []string{"concerned", "unconcerned", "blocked", "failed", "ending", "done", "elsewhere", "suspended"}
	all := append([]string{"first", "second"}, crowd...)
	r.settle(all...)
	for _, name := range all {
		if name != "suspended" {
			r.reportRunning(name)
		}
	}
	r.pass(time.Minute)
	r.delivers("done", "web/done.html")
	r.final("blocked", protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid, "it breaks a rule")
	r.settle(all...)
	for range 2 { // a retry, and the end
		r.final("failed", protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "")
		r.settle(all...)
		r.pass(10 * time.Minute)
		r.settle(all...)
	}
	r.want("failed", v1alpha1.PhaseFailed, v1alpha1.ReasonAgentFailed)
	r.want("blocked", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
	// Its watchdog has said its last word, and its pod is still there.
	r.report("ending", func(run *applyv1alpha1.RunStatusApplyConfiguration) {
		run.WithFinal(applyv1alpha1.FinalReport().WithEpoch(r.get("ending").Status.Attempt).WithOutcome(protocol.OutcomeBlocked).WithReason(protocol.ReasonCheckpointInvalid).WithMessage("it breaks a rule"))
	})
	written := func(what string, want ...string) {
		t.Helper()
		before, notices := map[string]string{}, len(r.get("ending").Status.Deliveries)
		for _, name := range crowd {
			before[name] = r.get(name).ResourceVersion
		}
		r.settle(all...)
		var got []string
		for _, name := range crowd {
			if name != "ending" && r.get(name).ResourceVersion != before[name] {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s writes %q, want %q", what, got, want)
		}
		if now := len(r.get("ending").Status.Deliveries); now != notices {
			t.Errorf("%s is noticed by a Feature that has ended", what)
		}
	}
	r.delivers("first", "web/index.html")
	r.must(r.reconcile("first"), "reconcile first")
	written("a delivery", "concerned")
	written("the same delivery, once more")
	r.pass(time.Minute)
	r.delivers("second", "lib/a.go")
	r.must(r.reconcile("second"), "reconcile second")
	written("a delivery that touches nobody")
}

// TestADeliveryWakesWhoMayCare: who is at work in the project and on the repository, a little later.
func TestADeliveryWakesWhoMayCare(t *testing.T) {
	now := metav1.Now()
	feature := func(name string, change func(*v1alpha1.Feature)) v1alpha1.Feature {
		f := v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		f.Spec.Repository.URL = "https://git.example.com/shop.git"
		f.Status.Phase, f.Status.Attempt, f.Status.Job = v1alpha1.PhaseRunning, 1, &v1alpha1.JobStatus{}
		change(&f)
		return f
	}
	delivered := feature("first", func(f *v1alpha1.Feature) {
		f.Status.Phase, f.Status.CompletionTime, f.Status.Job.EndTime = v1alpha1.PhaseDelivered, &now, &now
		f.Status.Run = &v1alpha1.RunStatus{Epoch: 1, Final: &v1alpha1.FinalReport{Epoch: 1, Outcome: protocol.OutcomeDelivered, PathCount: 1}}
	})
	before := delivered
	before.Status.Phase = v1alpha1.PhaseReadyToMerge
	cache := waitingFeatures{list: []v1alpha1.Feature{
		delivered,
		feature("at-work", func(f *v1alpha1.Feature) { f.Spec.Repository.URL = "https://GIT.example.com/shop" }),
		feature("elsewhere", func(f *v1alpha1.Feature) { f.Spec.Repository.URL = "https://git.example.com/other.git" }),
		feature("other-project", func(f *v1alpha1.Feature) { f.Namespace = "bank" }),
		feature("ended", func(f *v1alpha1.Feature) { f.Status.Job.EndTime = &now }),
		feature("waiting", func(f *v1alpha1.Feature) { f.Status.Job = nil }),
		feature("ending", func(f *v1alpha1.Feature) {
			f.Status.Run = &v1alpha1.RunStatus{Epoch: 1, Final: &v1alpha1.FinalReport{Epoch: 1, Outcome: protocol.OutcomeBlocked}}
		}),
		feature("again", func(f *v1alpha1.Feature) { // of the attempt before
			f.Status.Attempt = 2
			f.Status.Run = &v1alpha1.RunStatus{Epoch: 1, Final: &v1alpha1.FinalReport{Epoch: 1, Outcome: protocol.OutcomeBlocked}}
		}),
	}}
	var woken called
	h := waker{client: cache}.delivered()
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: &before, ObjectNew: &delivered}, &woken)
	if want := []string{"at-work", "again"}; !slices.Equal(woken.names, want) {
		t.Errorf("a delivery wakes %q, want %q", woken.names, want)
	}
	woken.names = nil
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: &delivered, ObjectNew: &delivered}, &woken)
	if len(woken.names) > 0 {
		t.Errorf("no delivery wakes %q", woken.names)
	}
}

// called are the Features that are to be looked at later.
type called struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	names []string
}

func (c *called) AddAfter(r reconcile.Request, _ time.Duration) { c.names = append(c.names, r.Name) }
