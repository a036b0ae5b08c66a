// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// TestALongRollbackNameIsAnswered: the answer quotes it, and would be longer than a status takes.
func TestALongRollbackNameIsAnswered(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Requests = []v1alpha1.Request{{ID: "back", Rollback: &v1alpha1.RollbackRequest{Checkpoint: strings.Repeat("\ue000", 253)}}}
	})
	r.settle("login")
	if got := r.get("login").Status.ObservedRequests; len(got) != 1 || got[0].State != "Failed" {
		t.Errorf("the results are %+v", got)
	}
}

// large is a plan whose instructions have that many characters in all, of those that take the most bytes where they are
// stored.
func large(characters int) *v1alpha1.Plan {
	plan := &v1alpha1.Plan{Milestones: []v1alpha1.Milestone{{Name: "a"}}}
	for n := 0; characters > 0; n++ {
		some := min(characters, 60_000)
		characters -= some
		plan.Milestones[0].Tasks = append(plan.Milestones[0].Tasks, v1alpha1.Task{Name: "t" + strings.Repeat("x", n), Instructions: strings.Repeat("<", some)})
	}
	return plan
}

// TestTheLargestSpecHasRoomForAStatus: a larger one is refused when it is written, with what to do.
func TestTheLargestSpecHasRoomForAStatus(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Plan = large(130_000)
		f.Annotations = map[string]string{"large": strings.Repeat("x", 250<<10)} // such as what kubectl apply keeps there
	})
	r.settle("login")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "larger"}, Spec: *r.get("login").Spec.DeepCopy()}
	for name, change := range map[string]func(*v1alpha1.FeatureSpec){
		"instructions": func(s *v1alpha1.FeatureSpec) { s.Plan = large(132_000) },
		"areas": func(s *v1alpha1.FeatureSpec) {
			s.Plan = &v1alpha1.Plan{}
			for n := range 256 {
				s.Plan.AllowedAreas = append(s.Plan.AllowedAreas, strings.Repeat("x", n+120)+"/**")
			}
		},
		"answers": func(s *v1alpha1.FeatureSpec) {
			s.Plan = nil
			for n := range 9 {
				s.Answers = append(s.Answers, v1alpha1.Answer{Question: strings.Repeat("q", n+1), Text: strings.Repeat("x", 16_384)})
			}
		},
	} {
		larger := f.DeepCopy()
		change(&larger.Spec)
		if err := r.user.Create(t.Context(), larger); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the spec is too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatAnAgentCannotBeToldIsRefused with the number, and accepted once it is shorter.
func TestWhatAnAgentCannotBeToldIsRefused(t *testing.T) {
	r := newHarness(t)
	prompts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "prompts"}, Data: map[string]string{"login": strings.Repeat("x", 1<<20-100)}}
	r.must(r.user.Create(t.Context(), prompts), "create ConfigMap")
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Prompt, f.Spec.PromptFrom = "", &v1alpha1.PromptSource{ConfigMapKeyRef: v1alpha1.ConfigMapKeyRef{Name: "prompts", Key: "login"}}
		f.Spec.Plan = large(9)
	})
	r.settle("login")
	message := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonOrdersTooLarge)
	if !strings.Contains(message, "1048476 bytes") || !strings.Contains(message, "ConfigMap prompts") {
		t.Errorf("the message is %q", message)
	}
	prompts.Data["login"] = strings.Repeat("x", 100<<10)
	r.must(r.user.Update(t.Context(), prompts), "shorten the prompt")
	r.settle("login")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
}
