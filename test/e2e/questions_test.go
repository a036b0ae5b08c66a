// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// TestQuestionParks: a real CLI in Interactive mode asks a user with the watchdog's tool, beside its own tools and without approval. Its pod is gone while
// the question waits, and the answer continues its session in the next attempt, where it is told before anything else.
func TestQuestionParks(t *testing.T) {
	t.Parallel()
	for _, runtime := range []string{"claude-code", "codex", "opencode"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 10*time.Minute), "harbours by "+runtime
			p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "questions"}, Spec: v1alpha1.SupervisorPolicySpec{
				Defaults: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{ParkAfter: &metav1.Duration{Duration: 5 * time.Second}}},
			}}), "make the policy")
			session(t, p, runtime, about, `turns:
- text: I begin.
  run: mkdir -p web && echo one > web/one.html
- text: I ask.
  tool: {name: ask_user, input: {question_id: q1, question: "Which colour?"}}
- text: I go on.
  run: echo two > web/two.html
- text: I say so.
  tool: {name: task_complete, input: {summary: There is a page.}}
- text: It is written.`)
			f := p.until("page", "the end of the attempt that asked", func(f *v1alpha1.Feature) bool {
				return f.Status.Run != nil && f.Status.Run.Final != nil || f.Status.Phase == v1alpha1.PhaseBlocked || f.Status.Phase == v1alpha1.PhaseFailed
			})
			if f.Status.Run == nil || f.Status.Run.Final == nil || f.Status.Run.Final.Outcome != protocol.OutcomeParked {
				t.Fatalf("phase %s, run %+v: %s", f.Status.Phase, f.Status.Run, cluster.Message(f, v1alpha1.ConditionSucceeded))
			}
			p.until("page", "no pod that runs", func(f *v1alpha1.Feature) bool {
				var pods corev1.PodList
				p.must(k8s.List(p.ctx, &pods, client.InNamespace(p.project)), "list pods")
				over := func(pod corev1.Pod) bool {
					return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
				}
				return !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return !over(pod) }) && f.Status.Job.EndTime != nil
			})
			f = p.phase("page", v1alpha1.PhaseAwaitingInput, v1alpha1.ReasonAwaitingInput)
			if q := f.Status.Run.Question; q == nil || q.ID != "q1" || q.Text != "Which colour?" || q.AskedTime == nil {
				t.Errorf("question %+v", q)
			}
			p.change("page", func(s *v1alpha1.FeatureSpec) { s.Answers = []v1alpha1.Answer{{Question: "q1", Text: "teal"}} })
			f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
			if f.Status.Attempt != 2 || f.Status.Failures != 0 || f.Status.Lost != 0 {
				t.Errorf("attempt %d, failures %d, lost %d", f.Status.Attempt, f.Status.Failures, f.Status.Lost)
			}
			if got := p.history(f.Status.Branch); !strings.Contains(got, "web/one.html") || !strings.Contains(got, "web/two.html") {
				t.Errorf("the branch lacks a page:\n%s", got)
			}
			body := said(p, about)
			for _, part := range []string{"I begin.", "The answer to your question q1", "is: teal"} {
				if !strings.Contains(body, part) {
					t.Errorf("the session lacks %q: %.3000s", part, body)
				}
			}
			if w := f.Status.Run.Tasks[0].Work; w == nil || w.Summary != "There is a page." {
				t.Errorf("work %+v", w)
			}
		})
	}
}
