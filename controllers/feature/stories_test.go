// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
	"github.com/tidewaiter/tidewaiter/internal/kube/modelbackends"
)

func TestDelivered(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")

	f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	if f.Status.Attempt != 1 || f.Status.Job.Name != "twf-login-1" || f.Status.Job.PodUID != string(r.pods()[0].UID) {
		t.Errorf("attempt %d, job %+v", f.Status.Attempt, f.Status.Job)
	}
	r.wantJobs("twf-login-1")
	r.wantChildren("login")

	r.reportRunning("login")
	r.settle("login")
	r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonRunning)
	r.wantCondition("login", v1alpha1.ConditionAgentRunning, metav1.ConditionTrue, v1alpha1.ReasonRunning)
	r.wantCondition("login", v1alpha1.ConditionSupervised, metav1.ConditionTrue, v1alpha1.ReasonConnected)

	r.pass(10 * time.Minute)
	r.final("login", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle("login")
	f = r.want("login", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if f.Status.Head != head || f.Status.Branch != "tidewaiter/login" || f.Status.CompletionTime == nil {
		t.Errorf("head %q, branch %q, finished %v", f.Status.Head, f.Status.Branch, f.Status.CompletionTime)
	}
	r.wantCondition("login", v1alpha1.ConditionSucceeded, metav1.ConditionTrue, v1alpha1.ReasonDelivered)
}

// wantChildren checks that what the pod rests on is there and belongs to the Feature.
func (r *harness) wantChildren(name string) {
	r.Helper()
	f := r.get(name)
	for object, child := range map[client.Object]string{
		&networkingv1.NetworkPolicy{}: naming.NetworkPolicy(name), &corev1.PersistentVolumeClaim{}: desired.TrustedClaim(name),
	} {
		r.must(r.user.Get(r.Context(), client.ObjectKey{Namespace: r.project, Name: child}, object), "read %T %s", object, child)
		if !metav1.IsControlledBy(object, f) {
			r.Errorf("%T %s does not go with the Feature: %v", object, child, object.GetOwnerReferences())
		}
	}
	var bundle corev1.ConfigMap
	r.must(r.user.Get(r.Context(), client.ObjectKey{Namespace: r.project, Name: protocol.CAConfigMap}, &bundle), "read the CA bundle")
	if bundle.Data[protocol.CAKey] != string(r.bundle) {
		r.Errorf("the CA bundle is %q", bundle.Data)
	}
}

func TestNothingIsWrittenWhenNothingHappens(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	for _, story := range []func(){
		func() {},
		func() { r.reportRunning("login") },
		func() {
			r.final("login", protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid, "Rule areas forbids x.")
		},
	} {
		story()
		r.settle("login")
		before := r.world()
		r.events()
		for range 3 {
			r.pass(5 * time.Minute)
			r.must(r.reconcile("login"), "reconcile")
		}
		if after := r.world(); after != before {
			t.Errorf("a reconcile without news writes:\n%s\nthen\n%s", before, after)
		}
		if sent := r.events(); len(sent) != 0 {
			t.Errorf("a reconcile without news sends events: %v", sent)
		}
	}
}

func TestStartTakesFewWrites(t *testing.T) {
	r := newHarness(t)
	counter := &writeCounter{Client: r.manager}
	r.writes = counter
	r.feature("login", nil)
	r.settle("login")
	// One of them is the CA bundle, once for each project.
	if counter.writes > 9 || counter.conflicts > 0 {
		t.Errorf("%d writes and %d conflicts to start a Feature", counter.writes, counter.conflicts)
	}
}

func TestLostPodIsFollowedByAnotherAttempt(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.reportRunning("login")
	r.settle("login")
	pod := r.pods()[0]
	r.losePod(&pod)
	r.settle("login")
	f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	if f.Status.Attempt != 2 || f.Status.Failures != 0 || f.Status.Lost != 1 {
		t.Errorf("attempt %d, failures %d, lost %d", f.Status.Attempt, f.Status.Failures, f.Status.Lost)
	}
	r.wantJobs("twf-login-2")
	if f.Status.Job.PodUID == string(pod.UID) {
		t.Error("the lost pod may still report")
	}
}

func TestAgentFailuresAndRetries(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.final("login", protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "The agent exited with code 3.")
	r.settle("login")
	if f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonRetrying); f.Status.Failures != 1 || f.Status.Attempt != 1 {
		t.Errorf("the next attempt does not wait: failures %d, attempt %d", f.Status.Failures, f.Status.Attempt)
	}
	r.pass(10 * time.Second)
	r.settle("login")
	if f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing); f.Status.Failures != 1 || f.Status.Attempt != 2 {
		t.Errorf("failures %d, attempt %d", f.Status.Failures, f.Status.Attempt)
	}
	r.final("login", protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "The agent exited with code 3.")
	r.settle("login")
	r.want("login", v1alpha1.PhaseFailed, v1alpha1.ReasonAgentFailed)
	r.wantCondition("login", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAgentFailed)

	r.change("login", func(s *v1alpha1.FeatureSpec) {
		s.Requests = []v1alpha1.Request{{ID: "again", Retry: &v1alpha1.RetryRequest{}}}
	})
	r.settle("login")
	f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	if f.Status.Attempt != 3 || len(f.Status.ObservedRequests) != 1 || f.Status.ObservedRequests[0].State != "Done" {
		t.Errorf("attempt %d, requests %+v", f.Status.Attempt, f.Status.ObservedRequests)
	}
}

// TestAModelThatComesLate: an attempt that ended because the gateway had no model spends no retry, and the next one starts as soon as the
// configuration of backends changes, in the middle of its pause.
func TestAModelThatComesLate(t *testing.T) {
	r := newHarness(t)
	config := func(model string) {
		r.backends("backends: [{name: main, dialects: [anthropic], baseURL: https://api.example.com, models: [{name: " + model + "}]}]")
	}
	config("small")
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: "example.com/agent:1"}
	})
	r.settle("login")
	for attempt := int64(1); attempt <= 2; attempt++ {
		r.report("login", func(run *applyv1alpha1.RunStatusApplyConfiguration) {
			run.WithConnected(false).WithConnectionTransitionTime(metav1.NewTime(r.clock.Now())).
				WithReport(applyv1alpha1.RunReport().WithWorkspaceReady(true).WithHead(head)).
				WithFinal(applyv1alpha1.FinalReport().WithEpoch(attempt).WithOutcome(protocol.OutcomeAgentFailed).
					WithReason(protocol.ReasonProviderUnavailable).WithMessage("Its last model call failed.").WithHead(head).
					WithFailure(applyv1alpha1.CallFailure().WithClass(protocol.FailurePolicy).WithCause("ModelNotAvailable").WithCalls(2)))
		})
		r.endPod("login")
		r.settle("login")
		f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonProviderUnavailable)
		if f.Status.Failures != 0 || f.Status.Attempt != attempt || f.Status.Unserved == nil || int64(f.Status.Unserved.Attempts) != attempt || f.Status.Unserved.BackendsHash == "" {
			t.Errorf("failures %d, attempt %d, unserved %+v", f.Status.Failures, f.Status.Attempt, f.Status.Unserved)
		}
		if after := r.results["login"].RequeueAfter; after == 0 || after > 15*time.Second {
			t.Errorf("it looks again after %s", after)
		}
		r.pass(10 * time.Second)
		r.settle("login")
		r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonProviderUnavailable)
		config(fmt.Sprint("large-", attempt))
		r.settle("login")
		if f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing); f.Status.Attempt != attempt+1 || f.Status.Failures != 0 {
			t.Errorf("attempt %d, failures %d", f.Status.Attempt, f.Status.Failures)
		}
	}
}

func TestSuspendAndResume(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.reportRunning("login")
	r.change("login", func(s *v1alpha1.FeatureSpec) { s.Suspend = true })
	r.settle("login")
	r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonSuspending)
	r.final("login", protocol.OutcomeSuspended, protocol.ReasonSuspended, "")
	r.settle("login")
	r.want("login", v1alpha1.PhaseSuspended, v1alpha1.ReasonSuspended)
	r.change("login", func(s *v1alpha1.FeatureSpec) { s.Suspend = false })
	r.settle("login")
	if f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing); f.Status.Attempt != 2 || f.Status.Failures+f.Status.Lost != 0 {
		t.Errorf("attempt %d, failures %d, lost %d", f.Status.Attempt, f.Status.Failures, f.Status.Lost)
	}
}

func TestDeadlineEndsTheRun(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) { f.Spec.ActiveDeadline = &metav1.Duration{Duration: time.Hour} })
	r.settle("login")
	r.reportRunning("login")
	r.pass(61 * time.Minute)
	r.settle("login")
	r.want("login", v1alpha1.PhaseFailed, v1alpha1.ReasonDeadlineExceeded)
	r.wantJobs("twf-login-1")
	r.pass(61 * time.Second) // The watchdog does not answer: the minute for an orderly end is over.
	r.settle("login")
	f := r.want("login", v1alpha1.PhaseFailed, v1alpha1.ReasonDeadlineExceeded)
	r.wantJobs()
	if len(r.pods()) != 0 || f.Status.Attempt != 1 {
		t.Errorf("pods %d, attempt %d", len(r.pods()), f.Status.Attempt)
	}
}

func TestDeletionWaitsForThePod(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.must(r.user.Delete(r.Context(), r.get("login")), "delete the Feature")
	// The API server's clock, not ours, says when.
	r.clock.SetTime(r.get("login").DeletionTimestamp.Time)
	r.settle("login")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonDeleting)
	r.wantJobs("twf-login-1")
	r.pass(time.Minute)
	r.settle("login")
	r.wantGone("login")
	r.wantJobs()
}

func (r *harness) wantGone(name string) {
	r.Helper()
	var f v1alpha1.Feature
	if err := r.user.Get(r.Context(), client.ObjectKey{Namespace: r.project, Name: name}, &f); !apierrors.IsNotFound(err) {
		r.Fatalf("Feature %s is still there (%v): %+v", name, err, f.Status)
	}
}

func TestTimeToLive(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) { f.Spec.TTLAfterFinished = &metav1.Duration{Duration: time.Hour} })
	r.settle("login")
	r.final("login", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle("login")
	r.pass(59 * time.Minute)
	r.settle("login")
	r.want("login", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	r.pass(time.Minute)
	r.settle("login")
	r.wantGone("login")
}

func TestUnknownRuntimeMakesNothing(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Agent = v1alpha1.Agent{Runtime: "abacus", Image: "example.com/agent:1"}
	})
	before := r.world()
	r.settle("login")
	r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonRuntimeNotAvailable)
	r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonRuntimeNotAvailable)
	r.wantCondition("login", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRuntimeNotAvailable)
	if after := r.world(); strings.Count(before, "\n") != strings.Count(after, "\n") {
		t.Errorf("something was made:\n%s", after)
	}
}

// backends configures the gateway, which keeps the last good configuration.
func (r *harness) backends(text string) {
	r.Helper()
	in := r.gateways["gateway-a"]
	config, err := modelbackends.Read(text)
	if err != nil {
		in.Problem = err.Error()
	} else {
		in = models.InForce{Backends: config.Outline().Backends}
	}
	r.gateways["gateway-a"] = in
	r.announce()
}

// TestAModelThatAppears: an agent that no backend would answer is not started, and starts once there is one.
func TestAModelThatAppears(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: "example.com/agent:1"}
	})
	r.settle("login")
	f := r.want("login", v1alpha1.PhasePending, v1alpha1.ReasonModelNotAvailable)
	r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonModelNotAvailable)
	if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionAccepted); !strings.Contains(c.Message, "speaks the dialect anthropic") {
		t.Errorf("message %q", c.Message)
	}
	if r.results["login"].RequeueAfter == 0 {
		t.Error("nobody looks again")
	}
	config := func(text string) {
		t.Helper()
		r.backends(text)
		r.pass(time.Minute)
		r.settle("login")
	}
	config("backends: [{name: main, dialects: [openai-chat], baseURL: https://api.example.com, models: [{name: large}]}]")
	r.want("login", v1alpha1.PhasePending, v1alpha1.ReasonModelNotAvailable)
	config("backends: [{name: main, dialects: [anthropic], baseURL: https://api.example.com, models: [{name: large}]}]")
	r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	if got := r.get("login").Status.Attempt; got != 1 {
		t.Errorf("attempt %d, want 1", got)
	}
}

// TestAWorkerIsToldItsDialect: one that speaks every dialect waits for a backend, runs from Tidewaiter's own image without one of the
// Feature's, and finds the dialect and the window of its model in its environment.
func TestAWorkerIsToldItsDialect(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) { f.Spec.Agent = v1alpha1.Agent{Runtime: "worker"} })
	r.settle("login")
	r.want("login", v1alpha1.PhasePending, v1alpha1.ReasonModelNotAvailable)
	if m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonModelNotAvailable); m != "The runtime worker has no model: the gateway has no backend: "+
		"an administrator adds one to its configuration (ConfigMap tidewaiter-backends in tidewaiter-system)." {
		t.Errorf("message %q", m)
	}
	config := func(text string) {
		t.Helper()
		r.backends(text)
		r.pass(time.Minute)
		r.settle("login")
	}
	config("backends: [{name: main, dialects: [openai-chat, anthropic], baseURL: https://api.example.com, models: [{name: large, contextWindow: 64000}]}]")
	if m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonModeFallback); !strings.Contains(m, "Runtime worker does not support Interactive mode, falling back to Deterministic.") {
		t.Errorf("message %q", m)
	}
	var pods batchv1.JobList
	r.must(env.Client.List(t.Context(), &pods, client.InNamespace(r.project)), "list Jobs")
	if len(pods.Items) != 1 {
		t.Fatalf("%d Jobs", len(pods.Items))
	}
	spec := pods.Items[0].Spec.Template.Spec
	got := map[string]string{}
	for _, e := range spec.Containers[0].Env {
		got[e.Name] = e.Value
	}
	if got["TIDEWAITER_DIALECT"] != "openai-chat" || got["TIDEWAITER_CONTEXT_WINDOW"] != "64000" || spec.Containers[0].Image != spec.InitContainers[0].Image {
		t.Errorf("environment %v, image %s", got, spec.Containers[0].Image)
	}
}

// TestAWatchdogIsToldTheWindow: the watchdog starts clients that have to know the window of their model, also where it is well known and nobody
// has configured it.
func TestAWatchdogIsToldTheWindow(t *testing.T) {
	r := newHarness(t)
	r.backends("backends: [{name: main, dialects: [openai-chat], baseURL: https://api.example.com, models: [{name: gpt-5}]}]")
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Agent = v1alpha1.Agent{Runtime: "opencode", Image: "example.com/agent:1"}
	})
	r.settle("login")
	var jobs batchv1.JobList
	r.must(env.Client.List(t.Context(), &jobs, client.InNamespace(r.project)), "list Jobs")
	if len(jobs.Items) != 1 {
		t.Fatalf("%d Jobs", len(jobs.Items))
	}
	for _, c := range jobs.Items[0].Spec.Template.Spec.InitContainers {
		if told := slices.Contains(c.Args, "--context-window=400000"); told != (c.Name == "watchdog") {
			t.Errorf("%s has the arguments %q", c.Name, c.Args)
		}
	}
	for _, e := range jobs.Items[0].Spec.Template.Spec.Containers[0].Env {
		if strings.HasPrefix(e.Name, "TIDEWAITER_") {
			t.Errorf("an agent that speaks one dialect has %s=%s", e.Name, e.Value)
		}
	}
}

// TestAConfigurationThatIsRefused: what is wrong with it and where is in the condition of a Feature that waits for it, and the last good one
// serves the others.
func TestAConfigurationThatIsRefused(t *testing.T) {
	r := newHarness(t)
	r.backends("backends: [{name: main, dialects: [openai-chat], baseURL: https://api.example.com, models: [{name: large}]}]")
	r.backends("backends: [{name: main, dialects: [openai-chat, anthropic], baseURL: https://api.example.com, kind: mystery, models: [{name: large}]}]")
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: "example.com/agent:1"}
	})
	r.settle("login")
	m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonModelNotAvailable)
	for _, part := range []string{"speaks the dialect anthropic", "the last good one stays in force", `backends[0].kind: "mystery"`, "ConfigMap tidewaiter-backends"} {
		if !strings.Contains(m, part) {
			t.Errorf("message %q has no %q", m, part)
		}
	}
	r.feature("served", func(f *v1alpha1.Feature) { f.Spec.Agent = v1alpha1.Agent{Runtime: "worker"} })
	r.settle("served")
	if got := r.get("served").Status.Attempt; got != 1 {
		t.Errorf("attempt %d of a Feature that the last good configuration serves", got)
	}
}

// TestGatewaysThatDiffer: a Feature waits until every gateway that is there has a model for it, and for none that is gone. One that runs
// goes on whatever they say.
func TestGatewaysThatDiffer(t *testing.T) {
	r := newHarness(t)
	stale := r.gateways["gateway-a"]
	r.backends("backends: [{name: main, dialects: [anthropic], baseURL: https://api.example.com, models: [{name: large}]}]")
	r.gateways["gateway-b"] = stale
	r.announce()
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: "example.com/agent:1"}
	})
	r.settle("login")
	if m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonModelNotAvailable); !strings.Contains(m, "at the gateway gateway-b, no backend") {
		t.Errorf("message %q", m)
	}
	delete(r.gateways, "gateway-b") // it says no more
	r.pass(models.InForceFor + time.Second)
	r.settle("login")
	r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	if got := r.get("login").Status.Attempt; got != 1 {
		t.Errorf("attempt %d, want 1", got)
	}
	r.reportRunning("login")
	clear(r.gateways)
	r.pass(models.InForceFor + time.Second)
	r.settle("login")
	r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonRunning)
	r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	r.feature("late", func(f *v1alpha1.Feature) {
		f.Spec.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: "example.com/agent:1"}
	})
	r.settle("late")
	f := r.want("late", v1alpha1.PhasePending, v1alpha1.ReasonSystemNotReady)
	if f.Status.Attempt != 0 || !slices.Contains(states(f), stateWaitingForModel) {
		t.Errorf("attempt %d, states %v", f.Status.Attempt, states(f))
	}
}

func TestPromptThatAppears(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Prompt = ""
		f.Spec.PromptFrom = &v1alpha1.PromptSource{ConfigMapKeyRef: v1alpha1.ConfigMapKeyRef{Name: "prompts", Key: "login"}}
	})
	r.settle("login")
	r.want("login", v1alpha1.PhasePending, v1alpha1.ReasonPromptNotFound)
	if r.results["login"].RequeueAfter == 0 {
		t.Error("nobody looks again")
	}
	prompts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "prompts", Namespace: r.project}}
	r.must(r.user.Create(r.Context(), prompts), "create the ConfigMap")
	r.settle("login")
	if m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonPromptNotFound); !strings.Contains(m, `"login"`) {
		t.Errorf("the message does not name the key: %s", m)
	}
	prompts.Data = map[string]string{"login": "Add a login page."}
	r.must(r.user.Update(r.Context(), prompts), "fill the ConfigMap")
	r.settle("login")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
}

func TestApprovalIsDeliveredByASealRun(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) { f.Spec.Delivery = &v1alpha1.Delivery{Approval: v1alpha1.ApprovalRequired} })
	r.settle("login")
	r.final("login", protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired, "")
	r.settle("login")
	r.want("login", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonApprovalRequired)
	r.change("login", func(s *v1alpha1.FeatureSpec) { s.Delivery.ApprovedCommit = strings.Repeat("2", 40) })
	r.settle("login")
	r.want("login", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonApprovalMismatch)
	r.change("login", func(s *v1alpha1.FeatureSpec) { s.Delivery.ApprovedCommit = head })
	r.settle("login")
	f := r.want("login", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonDelivering)
	if f.Status.Job.Run != v1alpha1.RunKindSeal || len(r.pods()) != 1 || r.pods()[0].Spec.Containers[0].Name != "seal" {
		t.Errorf("job %+v", f.Status.Job)
	}
	r.final("login", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle("login")
	r.want("login", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
}

func TestFaultIsToldAndHeals(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.report("login", func(run *applyv1alpha1.RunStatusApplyConfiguration) {
		run.WithFault(applyv1alpha1.RunFault().WithReason(v1alpha1.ReasonRepositoryNotFound).WithMessage("git.example.com has no shop.git."))
	})
	r.settle("login")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonRepositoryNotFound)
	r.wantCondition("login", v1alpha1.ConditionWorkspaceReady, metav1.ConditionFalse, v1alpha1.ReasonRepositoryNotFound)
	r.reportRunning("login")
	r.settle("login")
	r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonRunning)
}
