// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"cmp"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

// TestAskRestart: a person is asked under the restart mode Ask alone, and the mode that policies set reaches the watchdog.
func TestAskRestart(t *testing.T) {
	for mode, asks := range map[string]bool{"": false, "Resume": false, "Replay": false, "Ask": true} {
		f := full()
		e, err := supervisorpolicy.Effective(f, []v1alpha1.SupervisorPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "restart"}, Spec: v1alpha1.SupervisorPolicySpec{
			Defaults: &v1alpha1.Rules{Supervision: &v1alpha1.SupervisionRules{RestartMode: mode}},
		}}}, supervisorpolicy.Place{SystemNamespace: "tidewaiter-system"})
		if err != nil {
			t.Fatal(err)
		}
		if got := Spec(f, e).AskRestart; got != asks {
			t.Errorf("%q asks: %v", mode, got)
		}
		if got := Orders(f, e, "", nil).Policy.Supervision.RestartMode; got != cmp.Or(policy.RestartMode(mode), policy.RestartResume) {
			t.Errorf("%q is ordered as %q", mode, got)
		}
	}
}

// TestQuestionsReachTheCore: what the policy says of questions, the answers, and when the agent has asked.
func TestQuestionsReachTheCore(t *testing.T) {
	f := full()
	asked := metav1.Now()
	f.Status.Run.Question = &v1alpha1.Question{ID: "q1", Text: "Which colour?", AskedTime: &asked, Guess: true}
	if r := Run(f); r.QuestionID != "q1" || r.Question != "Which colour?" || !r.AskedAt.Equal(asked.Time) || !r.Guess {
		t.Errorf("run %+v", r)
	}
	questions := policy.Questions{Asking: policy.AskGuess, Timeout: time.Hour}
	if s := Spec(f, policy.Effective{Questions: questions}); s.Questions != questions || !slices.Equal(s.Answered, []string{"q1"}) {
		t.Errorf("spec %+v", s)
	}
	f.Spec.Workspace = &v1alpha1.Workspace{Ephemeral: true}
	if Orders(f, policy.Effective{}, "", nil).MayPark {
		t.Error("a pod whose volumes end with it may end")
	}
}
