// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
)

// gave reports directives of the reviewer of code style, of which the agent has addressed the first ones and not the others. Then the work is delivered.
func (r *harness) gave(name string, addressed, others int) {
	r.Helper()
	r.reportRunning(name)
	r.delivers(name, "web/index.html")
	r.report(name, func(run *applyv1alpha1.RunStatusApplyConfiguration) {
		run.WithFinal(applyv1alpha1.FinalReport().WithEpoch(r.get(name).Status.Attempt).WithOutcome(protocol.OutcomeDelivered).WithReason(protocol.ReasonDelivered).WithHead(head))
		for i := range addressed + others {
			state := protocol.DirectiveAddressed
			if i >= addressed {
				state = protocol.DirectiveDropped
			}
			run.WithDirectives(applyv1alpha1.DirectiveStatus().WithID(fmt.Sprintf("code-style/%d", i)).WithSource(protocol.SourceCodeStyle).WithState(state))
		}
	})
	r.must(r.reconcile(name), "reconcile %s", name)
	r.want(name, v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	r.pass(time.Minute)
}

// TestAReviewerThatIsNotHeeded: once agents of a project have addressed few of its directives, it looks only when a milestone is complete. The condition has the
// figure and does not change within an attempt, and agents that heed the reviewer end it.
func TestAReviewerThatIsNotHeeded(t *testing.T) {
	r := newHarness(t)
	unheeded := func(name string) []string {
		return features.Orders(r.get(name), policy.Effective{}, "", nil).Unheeded
	}
	absent := func(name string) {
		t.Helper()
		if c := meta.FindStatusCondition(r.get(name).Status.Conditions, v1alpha1.ConditionReviewersHeeded); c != nil || len(unheeded(name)) > 0 {
			t.Errorf("%s: %+v, unheeded %q", name, c, unheeded(name))
		}
	}
	var all []string
	begin := func(name string) { // each on a repository of its own: their areas would meet
		t.Helper()
		r.feature(name, func(f *v1alpha1.Feature) { f.Spec.Repository.URL = "https://git.example.com/" + name + ".git" })
		all = append(all, name)
		r.settle(all...)
	}
	begin("first")
	r.gave("first", 1, 11)
	begin("before")
	absent("before") // no reviewer runs
	r.gave("before", 0, 0)
	r.must(r.user.Create(r.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "reviewers"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Reviewers: &v1alpha1.ReviewerRules{CodeStyle: &v1alpha1.ReviewerRule{Enabled: new(true)}}},
	}}), "create the policy")
	begin("second")
	absent("second") // 12 are too few
	r.gave("second", 3, 7)
	begin("third")
	m := r.wantCondition("third", v1alpha1.ConditionReviewersHeeded, metav1.ConditionFalse, v1alpha1.ReasonFewDirectivesAddressed)
	// The last ones are those of the second Feature, and the newest 10 of the first one, which its agent has not addressed.
	if want := "Agents have addressed 3 of the last 20 directives of reviewer CodeStyle in this project (15 %). Below 30 %, it looks only when a milestone is complete: tell it in the policy what matters to your team, or turn it off."; m != want {
		t.Errorf("the message is %q, want %q", m, want)
	}
	if got := unheeded("third"); !slices.Equal(got, []string{protocol.SourceCodeStyle}) {
		t.Errorf("unheeded: %q", got)
	}
	r.gave("third", 10, 0)
	r.wantCondition("third", v1alpha1.ConditionReviewersHeeded, metav1.ConditionFalse, v1alpha1.ReasonFewDirectivesAddressed)
	begin("fourth")
	r.wantCondition("fourth", v1alpha1.ConditionReviewersHeeded, metav1.ConditionTrue, v1alpha1.ReasonDirectivesAddressed)
	if got := unheeded("fourth"); len(got) != 0 {
		t.Errorf("unheeded: %q", got)
	}
}
