// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// climbs makes a policy by which steering climbs a rung with each turn.
func (p *place) climbs(ladder v1alpha1.Rung) {
	p.Helper()
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "ladder"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{
			Anomalies: &v1alpha1.AnomalyRules{CheckEveryTurns: ptr.To[int32](1), CooldownTurns: ptr.To[int32](1), HoldTimeout: &metav1.Duration{Duration: time.Second}, Ladder: ladder},
		},
		// So that nothing of what is wrong is promoted before it is taken back.
		Overrides: &v1alpha1.Rules{Execution: &v1alpha1.Execution{Checkpoint: &v1alpha1.CheckpointTriggers{Interval: &metav1.Duration{Duration: time.Hour}}}},
	}}), "make the policy")
}

// bodies of the requests about something, in order.
func (p *place) bodies(about string) (all []string) {
	p.Helper()
	asked, err := provider.Asked(p.ctx, "Write a page about "+about)
	p.must(err, "ask the provider")
	for _, a := range asked {
		if strings.Contains(a.Body, `"tools"`) {
			all = append(all, a.Body)
		}
	}
	return all
}

// TestAgentThatIsNotSteered: a real CLI whose model goes on whatever it is told climbs the ladder to its end. Its repetitions are left out of what
// the model sees, it ends with the turn that has no tools and goes on in its session, its call is held, the work goes back to the last valid checkpoint, it is ended and started anew with a word about it, and at
// last a person decides.
func TestAgentThatIsNotSteered(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimesWithSessions {
		if runtime == "qwen-code" { // which ends itself at the fifth call of this kind: TestAgentThatEndsItsLoop
			continue
		}
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 6*time.Minute), "deaf posts by "+runtime
			p.climbs("Block")
			session(t, p, runtime, about, `turns:
- text: I begin.
  run: mkdir -p web && echo wrong > web/wrong.html
- until: what nobody says
  while: cat web/missing.html`)
			f := p.phase("page", v1alpha1.PhaseBlocked, v1alpha1.ReasonAnomalyPersists)
			ready := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded)
			if ready == nil || !strings.Contains(ready.Message, "the watchdog has tried everything that the policy's anomalies.ladder allows") || !strings.Contains(ready.Message, "the same call of") {
				t.Errorf("people are told: %+v", ready)
			}
			if f.Status.Attempt != 1 {
				t.Errorf("%d attempts", f.Status.Attempt)
			}
			back := 0
			for _, c := range p.checkpoints("page") {
				if c.Spec.Trigger == "Steering" && c.Spec.Action == v1alpha1.ActionReverted {
					back++
					if !slices.Contains(c.Spec.SamplePaths, "web/wrong.html") {
						t.Errorf("what is taken back: %q", c.Spec.SamplePaths)
					}
				}
			}
			if back != 1 {
				t.Errorf("taken back %d times", back)
			}
			all := strings.Join(p.bodies(about), "\n")
			for _, want := range []string{
				"left out of the conversation here", "This turn has no tools", "your last turn had no tools, and your run ended with it", "The supervisor held your work here", "The workspace has gone back to the last valid checkpoint",
				"The supervisor ended an agent that worked on this task before you",
			} {
				if !strings.Contains(all, want) {
					t.Errorf("the model has not heard %q", want)
				}
			}
		})
	}
}

// TestAgentThatEndsItsLoop: a client that ends itself at the fifth call of the same kind does so after its model was told. A model that goes on all the same
// is not taken for done, and costs an attempt.
func TestAgentThatEndsItsLoop(t *testing.T) {
	t.Parallel()
	p, about := newPlace(t, 8*time.Minute), "whirls" // on a busy machine this client takes minutes to end
	// On a busy machine this client loses a part of what a command says, so that one of the four results before its end may be another one.
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "early"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Anomalies: &v1alpha1.AnomalyRules{LoopCalls: ptr.To[int32](2)}},
	}}), "make the policy")
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: "qwen-code", Image: agentImage(t, "qwen-code")}
		s.MaxRetries = ptr.To[int32](0)
		s.Prompt = scripted("Write a page about "+about+".", `turns:
- text: I begin.
  run: mkdir -p web && echo wrong > web/wrong.html
- until: what nobody says
  while: cat web/missing.html`)
	})
	f := p.phase("page", v1alpha1.PhaseFailed, v1alpha1.ReasonAgentFailed)
	if f.Status.Attempt != 1 {
		t.Errorf("%d attempts", f.Status.Attempt)
	}
	if body := said(p, about); !strings.Contains(body, "[SUPERVISOR] ") {
		t.Errorf("the model was not told before the client ended itself: %.3000s", body)
	}
}

// TestHeldAgentIsLetGo: where the ladder ends with a hold the Feature is Blocked with its agent frozen, until a person lets it go on. The watchdog
// is killed in the midst of that, and neither forgets what was said nor says it again.
func TestHeldAgentIsLetGo(t *testing.T) {
	t.Parallel()
	p, about := newPlace(t, 6*time.Minute), "moorings"
	p.climbs("Hold")
	session(t, p, "claude-code", about, `turns:
- text: I begin.
  run: mkdir -p web && echo one > web/one.html
- until: The supervisor held your work here
  while: cat web/missing.html
  text: I do something else.
  run: echo two > web/two.html
- text: It is written.`)
	f := p.phase("page", v1alpha1.PhaseBlocked, v1alpha1.ReasonAgentHeld)
	p.until("page", "the condition of an agent whose call is held", func(f *v1alpha1.Feature) bool {
		c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionAgentLooping)
		return c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "the watchdog holds its next call")
	})
	before := len(p.bodies(about))
	p.killWatchdog(f.Status.Job.PodName)
	p.phase("page", v1alpha1.PhaseBlocked, v1alpha1.ReasonAgentHeld)
	p.change("page", func(s *v1alpha1.FeatureSpec) {
		s.Requests = []v1alpha1.Request{{ID: "go-on", Release: &v1alpha1.ReleaseRequest{}}}
	})
	f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if got := p.history(f.Status.Branch); !strings.Contains(got, "web/two.html") {
		t.Errorf("the branch lacks the page:\n%s", got)
	}
	all := p.bodies(about)
	if n := len(all) - before; n != 2 {
		t.Errorf("the model was asked %d times after the hold, want 2", n)
	}
	said, last := strings.Count(all[before-1], "[SUPERVISOR]"), all[len(all)-1]
	// It has ended with a turn without tools before, and was told that it goes on.
	if held, now := strings.Count(last, "The supervisor held your work here so that"), strings.Count(last, "[SUPERVISOR]"); held != 1 || now != said+1 {
		t.Errorf("the model was told %d times before it was held, and %d times in all; %d times that it was held", said, now, held)
	}
}

// killWatchdog kills the process of a pod's watchdog from the node, as the kernel does that runs out of memory, and waits for its successor.
func (p *place) killWatchdog(name string) {
	p.Helper()
	read := func(ctx context.Context) (pod corev1.Pod, watchdog corev1.ContainerStatus, err error) {
		err = k8s.Get(ctx, client.ObjectKey{Namespace: p.project, Name: name}, &pod)
		for _, c := range pod.Status.InitContainerStatuses {
			if c.Name == "watchdog" {
				watchdog = c
			}
		}
		return pod, watchdog, err
	}
	pod, was, err := read(p.ctx)
	p.must(err, "read the pod")
	_, id, _ := strings.Cut(was.ContainerID, "://")
	// It is outside the project, which admits no such pod, so that a run that was killed leaves it behind. It must not be in the way of the next.
	labels := map[string]string{"app.kubernetes.io/name": "killer-of-" + p.project}
	p.must(k8s.DeleteAllOf(p.ctx, &corev1.Pod{}, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels(labels)), "remove earlier killers")
	killer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: p.project + "-killer-", Labels: labels}, Spec: corev1.PodSpec{
		NodeName: pod.Spec.NodeName, HostPID: true, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{
			Name: "killer", Image: k8s.Image, SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](0), Privileged: ptr.To(true)},
			Command: []string{"bash", "-c", `for p in $(grep -l "$0" /proc/[0-9]*/cgroup); do p=${p%/cgroup}; kill -KILL "${p#/proc/}" && echo killed; done`, id},
		}},
	}}
	p.must(k8s.Create(p.ctx, killer), "make the killer")
	p.Cleanup(func() { _ = k8s.Delete(context.Background(), killer) })
	p.must(cluster.Until(p.ctx, "the watchdog to be started again", func(ctx context.Context) (bool, error) {
		_, now, err := read(ctx)
		return now.RestartCount > was.RestartCount && now.State.Running != nil, err
	}), "wait")
}

// TestSilentBuildIsLeftAlone: a real CLI whose tool says and changes nothing for eleven minutes, and hardly computes, is healthy: nothing is reported,
// and its model is told nothing. The tool is none that is known to wait: it reads a pipe into which nothing is written.
func TestSilentBuildIsLeftAlone(t *testing.T) {
	t.Parallel()
	p, about := newPlace(t, 16*time.Minute), "slow kilns"
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: agentImage(t, "claude-code"), Env: []v1alpha1.EnvVar{
			{Name: "BASH_DEFAULT_TIMEOUT_MS", Value: "1200000"}, {Name: "BASH_MAX_TIMEOUT_MS", Value: "1200000"},
		}}
		s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"web/**"}}
		s.Prompt = scripted("Write a page about "+about+".", `turns:
- text: I build it.
  run: mkfifo /tmp/kiln; timeout 660 cat /tmp/kiln; mkdir -p web; echo built > web/kiln.html
- text: It is built.`)
	})
	p.until("page", "a quiet time of eleven minutes, and the delivery", func(f *v1alpha1.Feature) bool {
		for _, c := range []string{v1alpha1.ConditionAgentStalled, v1alpha1.ConditionAgentLooping, v1alpha1.ConditionContextPressure, v1alpha1.ConditionCascadeFailure, v1alpha1.ConditionPaceEscalated} {
			if is := meta.FindStatusCondition(f.Status.Conditions, c); is != nil && is.Status == metav1.ConditionTrue {
				t.Fatalf("taken for sick: %+v", is)
			}
		}
		return f.Status.Phase == v1alpha1.PhaseDelivered
	})
	for _, body := range p.bodies(about) {
		if strings.Contains(body, "[SUPERVISOR]") {
			t.Errorf("the model was told: %.3000s", body)
		}
	}
	var f v1alpha1.Feature
	p.must(k8s.Get(p.ctx, client.ObjectKey{Namespace: p.project, Name: "page"}, &f), "read the Feature")
	if took := time.Since(f.CreationTimestamp.Time); took < 11*time.Minute {
		t.Errorf("it took %s only: the agent did not wait", took)
	}
}
