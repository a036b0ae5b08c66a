// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/translate"
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
	for _, d := range translate.Orders(r.get(name), effective, "", nil).Directives {
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
	r.policy("deliveries", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Concurrency: &v1alpha1.ConcurrencyRules{Deliveries: v1alpha1.DeliveryNoticeOff}}})
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
