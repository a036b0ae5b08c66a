// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// within is a plan with areas.
func within(areas ...string) func(*v1alpha1.Feature) {
	return func(f *v1alpha1.Feature) { f.Spec.Plan = &v1alpha1.Plan{AllowedAreas: areas} }
}

// overlap makes the project's policy about areas that overlap.
func (r *harness) overlap(how v1alpha1.OverlapHandling) {
	r.Helper()
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "areas"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Concurrency: &v1alpha1.ConcurrencyRules{OnOverlap: how}},
	}}
	r.must(r.user.Create(r.Context(), policy), "make a policy")
}

func TestAnOverlapIsTold(t *testing.T) {
	r := newHarness(t)
	r.feature("first", within("web/**"))
	r.settle("first")
	r.wantCondition("first", v1alpha1.ConditionAreasDisjoint, metav1.ConditionTrue, v1alpha1.ReasonNoOverlap)
	r.feature("second", within("api/**", "web/login/**"))
	r.feature("third", within("docs/**"))
	r.settle("first", "second", "third")
	m := r.wantCondition("second", v1alpha1.ConditionAreasDisjoint, metav1.ConditionFalse, v1alpha1.ReasonAreasOverlap)
	if want := "When the attempt started: Feature first works on the same repository: web/** of its plan and web/login/** of this one may match the same paths."; m != want {
		t.Errorf("the message is %q, want %q", m, want)
	}
	r.wantCondition("third", v1alpha1.ConditionAreasDisjoint, metav1.ConditionTrue, v1alpha1.ReasonNoOverlap)
	r.wantJobs("twf-first-1", "twf-second-1", "twf-third-1")
}

func TestAnOverlapIsWaitedFor(t *testing.T) {
	r := newHarness(t)
	r.overlap(v1alpha1.OverlapWait)
	names := []string{"first", "second", "third", "urgent"}
	r.feature("first", within("web/**"))
	r.feature("second", within("web/login/**"))
	r.settle("first", "second")
	f := r.want("second", v1alpha1.PhasePending, v1alpha1.ReasonWaitingForArea)
	if m := r.wantCondition("second", v1alpha1.ConditionAreasDisjoint, metav1.ConditionFalse, v1alpha1.ReasonWaitingForArea); !strings.HasPrefix(m, "Feature first works on") {
		t.Errorf("the message is %q", m)
	}
	if r.results["second"].RequeueAfter == 0 || f.Status.Attempt != 0 {
		t.Errorf("looks again after %s, attempt %d", r.results["second"].RequeueAfter, f.Status.Attempt)
	}
	r.feature("third", within("docs/**"))
	r.feature("urgent", func(f *v1alpha1.Feature) {
		within("web/**")(f)
		f.Spec.Priority = 1
	})
	r.settle(names...)
	r.wantJobs("twf-first-1", "twf-third-1")
	// What goes on by itself does not wait for those who wait for it.
	r.final("first", protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "")
	r.settle(names...)
	r.wantJobs("twf-first-1", "twf-third-1")
	r.pass(10 * time.Second)
	r.settle(names...)
	r.wantJobs("twf-first-2", "twf-third-1")
	r.final("first", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle(append(names, "second")...)
	r.wantJobs("twf-first-2", "twf-third-1", "twf-urgent-1")
	r.want("second", v1alpha1.PhasePending, v1alpha1.ReasonWaitingForArea)
	r.final("urgent", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle(names...)
	r.wantJobs("twf-first-2", "twf-second-1", "twf-third-1", "twf-urgent-1")
}

func TestAnOverlapCanBeAllowed(t *testing.T) {
	r := newHarness(t)
	r.overlap(v1alpha1.OverlapAllow)
	r.feature("first", nil)
	r.feature("second", nil)
	r.settle("first", "second")
	r.wantCondition("second", v1alpha1.ConditionAreasDisjoint, metav1.ConditionUnknown, v1alpha1.ReasonNotCompared)
	r.wantJobs("twf-first-1", "twf-second-1")
}
