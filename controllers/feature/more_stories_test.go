// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// policy makes a SupervisorPolicy in the project.
func (r *harness) policy(name string, spec v1alpha1.SupervisorPolicySpec) *v1alpha1.SupervisorPolicy {
	r.Helper()
	p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.project}, Spec: spec}
	r.must(r.user.Create(r.Context(), p), "create policy %s", name)
	return p
}

func TestCapacityIsKeptByPriorityAndAge(t *testing.T) {
	r := newHarness(t)
	r.policy("one", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Capacity: &v1alpha1.CapacityRules{MaxRunning: ptr.To[int32](1)}}})
	all := []string{"first", "second", "urgent"}
	r.feature("first", nil)
	r.settle("first")
	r.feature("second", nil)
	r.feature("urgent", func(f *v1alpha1.Feature) { f.Spec.Priority = 10 })
	r.settle(all...)
	r.want("first", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.want("second", v1alpha1.PhasePending, v1alpha1.ReasonAtCapacity)
	r.want("urgent", v1alpha1.PhasePending, v1alpha1.ReasonAtCapacity)
	r.wantJobs("twf-first-1")

	r.deliver("first")
	r.settle(all...)
	r.want("urgent", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.want("second", v1alpha1.PhasePending, v1alpha1.ReasonAtCapacity)

	r.deliver("urgent")
	r.settle(all...)
	r.want("second", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
}

// TestProjectsTakeTurns: where a global policy limits the agents of all projects, the project with the oldest Feature that waits goes first, however
// urgent others call theirs.
func TestProjectsTakeTurns(t *testing.T) {
	r, other := newHarness(t), newHarness(t)
	count := func(c client.Reader) int {
		var features v1alpha1.FeatureList
		var jobs batchv1.JobList
		r.must(c.List(t.Context(), &features), "list Features")
		r.must(c.List(t.Context(), &jobs, client.MatchingLabels{v1alpha1.LabelRun: v1alpha1.RunAgent}), "list Jobs")
		return observe.Capacity(&v1alpha1.Feature{}, features.Items, jobs.Items, func(*v1alpha1.Feature) bool { return false }, 0, 1).RunningTotal
	}
	// What tests before this one have left counts, as far as the cache knows it.
	works := count(r.user)
	for count(manager) != works {
		time.Sleep(10 * time.Millisecond)
	}
	total := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Name: "total", Namespace: kubetest.SystemNamespace}, Spec: v1alpha1.SupervisorPolicySpec{
		NamespaceSelector: &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelRequirement{
			{Key: corev1.LabelMetadataName, Operator: v1alpha1.LabelIn, Values: []v1alpha1.LabelValue{v1alpha1.LabelValue(r.project), v1alpha1.LabelValue(other.project)}},
		}},
		Defaults: &v1alpha1.Rules{Capacity: &v1alpha1.CapacityRules{MaxRunningTotal: ptr.To(int32(works + 1))}}, //nolint:gosec // a few
	}}
	r.must(r.user.Create(t.Context(), total), "create the policy")
	t.Cleanup(func() { r.must(r.user.Delete(context.WithoutCancel(t.Context()), total), "delete the policy") })
	r.feature("first", nil)
	r.settle("first")
	r.want("first", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.feature("second", nil)
	r.settle("second")
	r.want("second", v1alpha1.PhasePending, v1alpha1.ReasonAtTotalCapacity)
	time.Sleep(1100 * time.Millisecond) // creation times are in seconds
	other.feature("urgent", func(f *v1alpha1.Feature) { f.Spec.Priority = 100 })
	other.settle("urgent")
	other.want("urgent", v1alpha1.PhasePending, v1alpha1.ReasonAtTotalCapacity)

	r.deliver("first")
	other.settle("urgent") // looks before second does, and first is over
	other.want("urgent", v1alpha1.PhasePending, v1alpha1.ReasonAtTotalCapacity)
	r.settle("first", "second")
	r.want("second", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.deliver("second")
	r.settle("first", "second")
	other.settle("urgent")
	other.want("urgent", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
}

// TestManyFeaturesStartFewAgents: many Features that are synced at once, in a project without any policy, start 5 agents, and the next one
// starts when one of these has ended.
func TestManyFeaturesStartFewAgents(t *testing.T) {
	r := newHarness(t)
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf("synced-%02d", i))
		r.feature(all[i], nil)
	}
	r.settle(all...)
	running := r.jobs()
	if len(running) != 5 {
		t.Fatalf("%d agents run", len(running))
	}
	waiting := 0
	for _, name := range all {
		if c := meta.FindStatusCondition(r.get(name).Status.Conditions, v1alpha1.ConditionSucceeded); c != nil && c.Reason == v1alpha1.ReasonAtCapacity {
			waiting++
		}
	}
	if waiting != len(all)-5 {
		t.Errorf("%d Features wait for room", waiting)
	}
	r.deliver(running[0].Labels[v1alpha1.LabelFeature])
	r.settle(all...)
	live := 0
	for _, j := range r.jobs() {
		if j.Status.CompletionTime == nil {
			live++
		}
	}
	if live != 5 {
		t.Errorf("%d agents run after the end of one", live)
	}
}

// TestPolicySuspends: the emergency stop ends the agent that runs and starts none, names the policy, and lets the work go on afterwards. A
// rule that cannot be read does not keep it from stopping.
func TestPolicySuspends(t *testing.T) {
	for name, rules := range map[string]*v1alpha1.Rules{
		"with rules that can be read": nil,
		"with a rule that cannot":     {Paths: &v1alpha1.PathRules{Protected: []string{"a/[/b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			p := r.policy("stop", v1alpha1.SupervisorPolicySpec{})
			r.policy("work", v1alpha1.SupervisorPolicySpec{Priority: 100})
			r.feature("login", nil)
			r.settle("login")
			r.reportRunning("login")
			r.settle("login")

			p.Spec.Suspend, p.Spec.Defaults = true, rules
			r.must(r.user.Update(r.Context(), p), "stop all agents")
			r.settle("login")
			if rules != nil {
				// The watchdog cannot be told of the stop: its Job is deleted at once.
				r.wantJobs()
				r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonPolicyInvalid)
			} else {
				r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonSuspending)
				if m := r.wantCondition("login", v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, v1alpha1.ReasonSuspending); !strings.Contains(m, r.project+"/stop") {
					t.Errorf("the message does not name the policy: %s", m)
				}
				r.final("login", protocol.OutcomeSuspended, protocol.ReasonSuspended, "")
				r.endPod("login")
				r.settle("login")
				f := r.want("login", v1alpha1.PhaseSuspended, v1alpha1.ReasonSuspendedByPolicy)
				if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded); !strings.Contains(c.Message, r.project+"/stop") {
					t.Errorf("the message does not name the policy: %s", c.Message)
				}
				if all := strings.Join(r.events(), "\n"); !strings.Contains(all, v1alpha1.ReasonSuspendedByPolicy) {
					t.Errorf("no Event tells of it:\n%s", all)
				}
			}
			if f := r.get("login"); f.Status.Attempt != 1 {
				t.Errorf("attempt %d was started", f.Status.Attempt)
			}

			p.Spec.Suspend, p.Spec.Defaults = false, nil
			r.must(r.user.Update(r.Context(), p), "let the agents go on")
			r.settle("login")
			if f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing); f.Status.Attempt != 2 {
				t.Errorf("attempt %d", f.Status.Attempt)
			}
		})
	}
}

// deliver ends a Feature's run, and its Job with it.
func (r *harness) deliver(name string) {
	r.Helper()
	r.final(name, protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	for _, j := range r.jobs() {
		if j.Labels[v1alpha1.LabelFeature] != name {
			continue
		}
		now := metav1.NewTime(r.clock.Now())
		j.Status.StartTime, j.Status.CompletionTime = &now, &now
		j.Status.Active, j.Status.Succeeded = 0, 1
		for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		r.must(r.user.Status().Update(r.Context(), &j), "complete Job %s", j.Name)
	}
}

func TestTwoFeaturesDoNotDisturbEachOther(t *testing.T) {
	r := newHarness(t)
	both := []string{"left", "right"}
	for _, name := range both {
		r.feature(name, nil)
	}
	r.settle(both...)
	r.reportRunning("left")
	for _, p := range r.pods() {
		if p.Labels[v1alpha1.LabelFeature] == "right" {
			r.losePod(&p)
		}
	}
	r.settle(both...)
	if f := r.want("left", v1alpha1.PhaseRunning, v1alpha1.ReasonRunning); f.Status.Attempt != 1 {
		t.Errorf("left has attempt %d", f.Status.Attempt)
	}
	if f := r.want("right", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing); f.Status.Attempt != 2 {
		t.Errorf("right has attempt %d", f.Status.Attempt)
	}
	r.wantJobs("twf-left-1", "twf-right-2")
}

func TestPolicyOfTheProject(t *testing.T) {
	r := newHarness(t)
	p := r.policy("strict", v1alpha1.SupervisorPolicySpec{})
	r.feature("login", nil)
	p.Spec.Overrides = &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{"a/[/b"}}}
	r.must(r.user.Update(r.Context(), p), "change the policy")
	r.settle("login")
	r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonPolicyInvalid)
	if m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonPolicyInvalid); !strings.Contains(m, "strict") || !strings.Contains(m, "spec.overrides.paths.protected") {
		t.Errorf("the message names neither policy nor field: %s", m)
	}
	r.wantJobs()

	p.Spec.Overrides = &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{"infra/**"}}}
	r.must(r.user.Update(r.Context(), p), "change the policy")
	r.settle("login")
	f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	if f.Status.Policy == nil || f.Status.Policy.Hash == "" || len(f.Status.Policy.Sources) != 1 || f.Status.Policy.Sources[0] != r.project+"/strict" {
		t.Errorf("policy in the status: %+v", f.Status.Policy)
	}
}

// TestModes: a policy decides over the Feature, the pod is made for the mode, and another mode is another attempt, which
// is no retry.
func TestModes(t *testing.T) {
	r := newHarness(t)
	p := r.policy("strict", v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{Execution: &v1alpha1.Execution{Mode: v1alpha1.ModeDeterministic}}})
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Execution = &v1alpha1.Execution{Mode: v1alpha1.ModeInteractive}
	})
	r.settle("login")
	r.wantMode("twf-login-1", v1alpha1.ModeDeterministic)

	r.reportRunning("login")
	p.Spec.Overrides = nil
	r.must(r.user.Update(r.Context(), p), "change the policy")
	r.settle("login")
	if f := r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonRunning); f.Status.Job.Mode != v1alpha1.ModeDeterministic {
		t.Errorf("the attempt has mode %s", f.Status.Job.Mode)
	}
	r.final("login", protocol.OutcomeSwitched, protocol.ReasonModeSwitched, "the next task runs in mode Interactive")
	r.settle("login")
	f := r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	if f.Status.Attempt != 2 || f.Status.Failures != 0 || f.Status.Lost != 0 {
		t.Errorf("attempt %d, failures %d, lost %d", f.Status.Attempt, f.Status.Failures, f.Status.Lost)
	}
	r.wantMode("twf-login-2", v1alpha1.ModeInteractive)
}

// wantMode checks what the agent of a Job may write.
func (r *harness) wantMode(name string, mode v1alpha1.ExecutionMode) {
	r.Helper()
	for _, j := range r.jobs() {
		if j.Name != name {
			continue
		}
		for _, m := range j.Spec.Template.Spec.Containers[0].VolumeMounts {
			if m.MountPath == protocol.WorkspaceDir && m.ReadOnly != (mode == v1alpha1.ModeDeterministic) {
				r.Errorf("the workspace of %s is read-only: %v", name, m.ReadOnly)
			}
		}
		if got := j.Labels[v1alpha1.LabelMode]; got != string(mode) {
			r.Errorf("%s has mode %q, want %s", name, got, mode)
		}
		return
	}
	r.Errorf("no Job %s", name)
}

func TestForeignObjectsAreLeftAlone(t *testing.T) {
	r := newHarness(t)
	foreign := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "twf-login-trusted", Namespace: r.project},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	r.must(r.user.Create(r.Context(), foreign), "create somebody's claim")
	r.feature("login", nil)
	r.settle("login")
	r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNameCollision)
	r.wantCondition("login", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNameCollision)
	r.wantJobs()
	var is corev1.PersistentVolumeClaim
	r.must(r.user.Get(r.Context(), client.ObjectKeyFromObject(foreign), &is), "read somebody's claim")
	if is.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("somebody's claim was changed: %+v", is.OwnerReferences)
	}
	is.Finalizers = nil // Nobody here protects claims in use.
	r.must(r.user.Update(r.Context(), &is), "unprotect somebody's claim")
	r.must(r.user.Delete(r.Context(), &is), "delete somebody's claim")
	r.settle("login")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
}

func TestPodProblemsAreTold(t *testing.T) {
	waiting := func(reason, message string) func(*corev1.PodStatus) {
		return func(s *corev1.PodStatus) {
			s.Phase = corev1.PodPending
			s.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "agent", Image: "example.com/agent:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			}}
		}
	}
	tests := map[string]struct {
		status func(*corev1.PodStatus)
		want   string
	}{
		"image":  {status: waiting("ImagePullBackOff", `Back-off pulling image "example.com/agent:1": ErrImagePull: not found`), want: v1alpha1.ReasonImageUnavailable},
		"config": {status: waiting("CreateContainerConfigError", `configmap "tidewaiter-ca" not found`), want: v1alpha1.ReasonContainerNotStarted},
		"node": {want: v1alpha1.ReasonUnschedulable, status: func(s *corev1.PodStatus) {
			s.Phase, s.ContainerStatuses = corev1.PodPending, nil
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			r.feature("login", nil)
			r.settle("login")
			pod := r.pods()[0]
			r.status(&pod, tc.status)
			r.settle("login")
			r.want("login", v1alpha1.PhasePreparing, tc.want)
			r.status(&pod, func(s *corev1.PodStatus) { s.Phase, s.ContainerStatuses, s.Conditions = corev1.PodRunning, nil, nil })
			r.settle("login")
			r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
		})
	}
}

func TestRejectedPodIsTold(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.must(r.reconcile("login"), "reconcile")
	job := r.jobs()[0]
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "login-1.", Namespace: r.project},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Namespace: r.project, Name: job.Name, UID: job.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "FailedCreate", LastTimestamp: metav1.NewTime(r.clock.Now()),
		Message: `Error creating: pods "login-1-x7k2p" is forbidden: exceeded quota`,
	}
	r.must(r.user.Create(r.Context(), event), "create the Job's event")
	r.pass(15 * time.Second)
	r.must(r.reconcile("login"), "reconcile")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPodRejected)
	if m := r.wantCondition("login", v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, v1alpha1.ReasonPodRejected); strings.Contains(m, "x7k2p") || !strings.Contains(m, "exceeded quota") {
		t.Errorf("the message is not stable or says nothing: %s", m)
	}
}

func TestNetworkPolicyIsMended(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	key := client.ObjectKey{Namespace: r.project, Name: "twf-login"}
	var policy networkingv1.NetworkPolicy
	r.must(r.user.Get(r.Context(), key, &policy), "read the NetworkPolicy")
	want := policy.Spec.DeepCopy()
	policy.Spec.Egress = append(policy.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
	r.must(r.user.Update(r.Context(), &policy), "open the NetworkPolicy")
	r.settle("login")
	r.must(r.user.Get(r.Context(), key, &policy), "read the NetworkPolicy")
	if len(policy.Spec.Egress) != len(want.Egress) {
		t.Errorf("egress stays open: %+v", policy.Spec.Egress)
	}
	r.must(r.user.Delete(r.Context(), &policy), "delete the NetworkPolicy")
	r.settle("login")
	r.must(r.user.Get(r.Context(), key, &policy), "read the NetworkPolicy")
}

func TestConnectionGoesWithItsReplica(t *testing.T) {
	r := newHarness(t)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: r.project},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: r.clock.Now()}, LeaseDurationSeconds: ptr.To[int32](30)},
	}
	r.must(r.user.Create(r.Context(), lease), "create the replica's Lease")
	r.feature("login", nil)
	r.settle("login")
	r.report("login", func(run *applyv1alpha1.RunStatusApplyConfiguration) {
		run.WithConnected(true).WithReplica(lease.Name).WithConnectionTransitionTime(metav1.NewTime(r.clock.Now()))
	})
	r.settle("login")
	r.wantCondition("login", v1alpha1.ConditionSupervised, metav1.ConditionTrue, v1alpha1.ReasonConnected)
	r.pass(61 * time.Second)
	r.settle("login")
	r.wantCondition("login", v1alpha1.ConditionSupervised, metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatMissing)
	if f := r.get("login"); f.Status.Attempt != 1 {
		t.Errorf("a broken connection led to attempt %d", f.Status.Attempt)
	}
}

// TestARolloutOfTheManagerIsNoBreak: the replica that held the connection is gone with its Lease, or the controller has
// just started and the watchdog is on its way to a replica.
func TestARolloutOfTheManagerIsNoBreak(t *testing.T) {
	for name, start := range map[string]func(r *harness){
		"the replica ended in order":  func(*harness) {},
		"the controller just started": func(r *harness) { r.justStarted = true },
		"the Lease expired meanwhile": func(r *harness) {
			r.justStarted = true
			lease := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: r.project},
				Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: r.clock.Now()}, LeaseDurationSeconds: ptr.To[int32](30)},
			}
			r.must(r.user.Create(r.Context(), lease), "create the replica's Lease")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			r.feature("login", nil)
			r.settle("login")
			r.reportRunning("login")
			r.settle("login")
			r.wantCondition("login", v1alpha1.ConditionSupervised, metav1.ConditionTrue, v1alpha1.ReasonConnected)
			start(r)
			r.report("login", func(run *applyv1alpha1.RunStatusApplyConfiguration) {
				run.WithConnected(true).WithReplica(r.project).WithConnectionTransitionTime(metav1.NewTime(r.clock.Now()))
			})
			r.pass(2 * time.Minute)
			again := r.reconciler()
			look := func() {
				r.Helper()
				_, err := reconcile.AsReconciler(r.writes, again).Reconcile(log.IntoContext(r.Context(), testr.New(t)), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: r.project, Name: "login"}})
				r.must(err, "reconcile")
			}
			look()
			r.wantCondition("login", v1alpha1.ConditionSupervised, metav1.ConditionTrue, v1alpha1.ReasonConnected)
			r.pass(29 * time.Second)
			look()
			r.wantCondition("login", v1alpha1.ConditionSupervised, metav1.ConditionTrue, v1alpha1.ReasonConnected)
			r.pass(2 * time.Second)
			look()
			r.wantCondition("login", v1alpha1.ConditionSupervised, metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatMissing)
		})
	}
}

func TestSecondPodOfAJobIsEnded(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	first := r.pods()[0]
	second := first.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: r.project, Name: "twf-login-1-extra", Labels: first.Labels, OwnerReferences: first.OwnerReferences}
	second.Status = corev1.PodStatus{}
	r.must(jobController.Create(r.Context(), second), "create a second pod")
	r.must(r.reconcile("login"), "reconcile")
	r.endDeleted()
	if pods := r.pods(); len(pods) != 1 || pods[0].UID != first.UID {
		t.Errorf("pods are %v", pods)
	}
	if f := r.get("login"); f.Status.Job.PodUID != string(first.UID) || f.Status.Attempt != 1 {
		t.Errorf("job %+v", f.Status.Job)
	}
}

// A rollback of a blocked Feature is done by a seal Job, which has the workspace and no agent; the Feature stays blocked.
func TestARollbackWithoutAnAgent(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.final("login", protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid, "Rule protected-paths forbids ci.yml")
	r.settle("login")
	r.change("login", func(s *v1alpha1.FeatureSpec) {
		s.Requests = []v1alpha1.Request{
			{ID: "other", Rollback: &v1alpha1.RollbackRequest{Checkpoint: "logout-1"}},
			{ID: "back", Rollback: &v1alpha1.RollbackRequest{Kind: v1alpha1.RollbackSmart}},
		}
	})
	r.settle("login")
	f := r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
	r.wantJobs("twf-login-2")
	if j := f.Status.Job; j.Run != v1alpha1.RunKindSeal || !j.Errand {
		t.Errorf("the rollback is done by %+v", j)
	}
	spec := r.jobs()[0].Spec.Template.Spec
	if len(spec.InitContainers) != 0 || len(spec.Containers) != 1 || spec.Containers[0].Name != "seal" {
		t.Errorf("the pod has the containers %+v and %+v", spec.InitContainers, spec.Containers)
	}
	r.report("login", func(run *applyv1alpha1.RunStatusApplyConfiguration) {
		run.WithRequests(applyv1alpha1.ObservedRequest().WithID("back").WithState("Done").WithMessage("Reverted 1 file").
			WithObservedTime(metav1.NewTime(r.clock.Now())))
	})
	r.settle("login")
	r.final("login", protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid, "Rule protected-paths forbids ci.yml")
	r.settle("login")
	f = r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
	want := map[string]string{"other": "Failed", "back": "Done"}
	for _, o := range f.Status.ObservedRequests {
		if want[o.ID] != o.State {
			t.Errorf("request %s %s: %s", o.ID, o.State, o.Message)
		}
		delete(want, o.ID)
	}
	if len(want) > 0 || f.Status.Failures != 0 {
		t.Errorf("requests without a result: %v; %d failures", want, f.Status.Failures)
	}
}
