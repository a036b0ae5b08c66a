// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func feature(name string, uid types.UID) *v1alpha1.Feature {
	return &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, CreationTimestamp: metav1.NewTime(noon)}}
}

func job(f *v1alpha1.Feature, attempt string, change func(*batchv1.Job)) batchv1.Job {
	j := batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: f.Name + "-" + attempt, UID: types.UID("job-" + f.Name + attempt), CreationTimestamp: metav1.NewTime(noon),
		Labels:          map[string]string{v1alpha1.LabelAttempt: attempt, v1alpha1.LabelRun: v1alpha1.RunAgent},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Feature", Name: f.Name, UID: f.UID, Controller: ptr.To(true)}},
	}}
	if change != nil {
		change(&j)
	}
	return j
}

func ended(kind batchv1.JobConditionType) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
	}
}

func TestJobs(t *testing.T) {
	f, other := feature("login", "uid-1"), feature("login", "uid-2")
	got := Jobs(f, []batchv1.Job{
		job(f, "10", ended(batchv1.JobFailed)),
		job(f, "9", ended(batchv1.JobComplete)),
		job(f, "2", func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: noon} }),
		job(f, "3", ended(batchv1.JobSuspended)),
		job(f, "x", nil), job(f, "", nil), job(f, "-1", nil), job(other, "4", nil),
		job(f, "", func(j *batchv1.Job) { j.Labels[v1alpha1.LabelRun] = v1alpha1.RunView }),
	})
	stray := func(name, uid string) lifecycle.Job {
		return lifecycle.Job{Name: name, UID: uid, Attempt: lifecycle.StrayJob, Run: lifecycle.RunAgent, Created: noon}
	}
	want := []lifecycle.Job{
		stray("login-", "job-login"), stray("login--1", "job-login-1"), stray("login-4", "job-login4"), stray("login-x", "job-loginx"),
		{Name: "login-2", UID: "job-login2", Attempt: 2, Run: lifecycle.RunAgent, Created: noon, Deleting: true},
		{Name: "login-3", UID: "job-login3", Attempt: 3, Run: lifecycle.RunAgent, Created: noon},
		{Name: "login-9", UID: "job-login9", Attempt: 9, Run: lifecycle.RunAgent, Created: noon, Ended: true},
		{Name: "login-10", UID: "job-login10", Attempt: 10, Run: lifecycle.RunAgent, Created: noon, Ended: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Jobs (-want +got):\n%s", diff)
	}
}

func TestPods(t *testing.T) {
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "agent", Image: "img", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	unschedulable := func(message string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	}
	tests := map[string]struct {
		status                    corev1.PodStatus
		nodes                     map[string]string
		wantStarted, wantEnded    bool
		wantStartedAt             time.Time
		wantReason, wantInMessage string
	}{
		"new":                    {status: corev1.PodStatus{Phase: corev1.PodPending}},
		"an init container runs": {status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{running}}, wantStarted: true},
		"one container ended, and the next one runs": {
			status: corev1.PodStatus{Phase: corev1.PodRunning, InitContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(noon)}}},
				{
					State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(time.Hour))}},
					LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(noon.Add(time.Minute))}},
				},
			}}, wantStarted: true, wantStartedAt: noon,
		},
		"the node does not answer": {status: corev1.PodStatus{Phase: corev1.PodUnknown, ContainerStatuses: []corev1.ContainerStatus{running}}, wantStarted: true},
		"succeeded":                {status: corev1.PodStatus{Phase: corev1.PodSucceeded}, wantEnded: true},
		"failed, with an old problem": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{waiting("ErrImagePull", "x")}}, wantEnded: true,
		},
		"no node": {status: corev1.PodStatus{Conditions: unschedulable("0/3 nodes")}, wantReason: v1alpha1.ReasonUnschedulable, wantInMessage: "0/3 nodes"},
		"no node with its labels": {
			status: corev1.PodStatus{Conditions: unschedulable("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.")}, nodes: map[string]string{"zone": "b", "pool": "agents"},
			wantReason: v1alpha1.ReasonUnschedulable, wantInMessage: "selector. A node must have the labels pool=agents, zone=b: label one, or change spec.agent.scheduling.nodeSelector",
		},
		"no volume": {
			status:     corev1.PodStatus{Conditions: unschedulable("0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.")},
			wantReason: v1alpha1.ReasonVolumePending, wantInMessage: "persistent volumes",
		},
		"a volume that is being made": {status: corev1.PodStatus{Conditions: unschedulable("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found")}},
		"image, at first": {
			status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ErrImagePull", "not found")}},
			wantReason: v1alpha1.ReasonImageUnavailable, wantInMessage: `the node cannot pull image "img" (not found).`,
		},
		"image, while the kubelet waits": {
			status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", `Back-off pulling image "img": ErrImagePull: not found`)}},
			wantReason: v1alpha1.ReasonImageUnavailable, wantInMessage: `the node cannot pull image "img" (not found).`,
		},
		"image, and the kubelet does not say why": {
			status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", `Back-off pulling image "img"`)}},
			wantReason: v1alpha1.ReasonImageUnavailable, wantInMessage: `the node cannot pull image "img".`,
		},
		"configuration": {
			status:     corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{waiting("CreateContainerConfigError", "no config map")}},
			wantReason: v1alpha1.ReasonContainerNotStarted, wantInMessage: "(no config map)",
		},
		"an ordinary wait": {status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("PodInitializing", "")}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "login-1-abc", UID: "pod-1", OwnerReferences: []metav1.OwnerReference{{Kind: "Job", UID: "job-1", Controller: ptr.To(true)}}},
				Spec:       corev1.PodSpec{NodeSelector: tc.nodes},
				Status:     tc.status,
			}
			got := Pods([]corev1.Pod{pod})[0]
			if want := tc.wantStartedAt; !got.StartedAt.Equal(want) {
				t.Errorf("started at %s, want %s", got.StartedAt, want)
			}
			if got.JobUID != "job-1" || got.Started != tc.wantStarted || got.Ended != tc.wantEnded {
				t.Errorf("pod %+v, want started %t, ended %t", got, tc.wantStarted, tc.wantEnded)
			}
			if reason := ptr.Deref(got.Problem, lifecycle.Problem{}).Reason; reason != tc.wantReason {
				t.Fatalf("problem %+v, want %q", got.Problem, tc.wantReason)
			}
			if got.Problem != nil && !strings.Contains(got.Problem.Message, tc.wantInMessage) {
				t.Errorf("message %q lacks %q", got.Problem.Message, tc.wantInMessage)
			}
		})
	}
	ended := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Job", UID: "job-1", Controller: ptr.To(true)}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on memory.",
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "prepare", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
				{Name: "watchdog", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}},
			},
		},
	}
	if got, want := Pods([]corev1.Pod{ended})[0].Fate, "Evicted: The node was low on memory.; container watchdog ended with exit code 137 (OOMKilled)"; got != want {
		t.Errorf("fate is %q, want %q", got, want)
	}
	viewing := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "viewing", Labels: map[string]string{v1alpha1.LabelRun: v1alpha1.RunView}, OwnerReferences: ended.OwnerReferences}}
	if got := Pods([]corev1.Pod{viewing}); len(got) != 0 {
		t.Errorf("a pod that answers an inquiry is taken for an attempt's: %+v", got)
	}
	for name, owners := range map[string][]metav1.OwnerReference{
		"nobody": nil, "a Job, not as its controller": {{Kind: "Job", UID: "job-1"}}, "something else": {{Kind: "ConfigMap", UID: "job-1", Controller: ptr.To(true)}},
	} {
		got := Pods([]corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "stray", OwnerReferences: owners}}})
		if len(got) != 1 || got[0].JobUID != "" {
			t.Errorf("a pod that %s owns is seen as %+v, want one of no Job", name, got)
		}
	}
}

func TestByItself(t *testing.T) {
	disruption := []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	deleted := &metav1.Time{Time: noon}
	for name, tc := range map[string]struct {
		deleted *metav1.Time
		status  corev1.PodStatus
		want    bool
	}{
		"it runs":                       {status: corev1.PodStatus{Phase: corev1.PodRunning}},
		"its container ended":           {status: corev1.PodStatus{Phase: corev1.PodFailed}, want: true},
		"its container ended well":      {status: corev1.PodStatus{Phase: corev1.PodSucceeded}, want: true},
		"it was deleted":                {deleted: deleted, status: corev1.PodStatus{Phase: corev1.PodFailed}},
		"its node is drained":           {status: corev1.PodStatus{Phase: corev1.PodFailed, Conditions: disruption}},
		"its node shuts down":           {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Terminated", Message: "Pod was terminated in response to imminent node shutdown."}},
		"its node is low on memory":     {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory.", Conditions: disruption}},
		"it filled its own volume":      {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: `Usage of EmptyDir volume "tmp" exceeds the limit "1Gi". `, Conditions: disruption}, want: true},
		"its container filled the disk": {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: `Container agent exceeded its local ephemeral storage limit "1Gi". `}, want: true},
	} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: tc.deleted}, Status: tc.status}
		if got := Pods([]corev1.Pod{pod})[0].ByItself; got != tc.want {
			t.Errorf("%s: by itself is %t, want %t", name, got, tc.want)
		}
	}
}

func TestVolumes(t *testing.T) {
	claim := func(name string, phase corev1.PersistentVolumeClaimPhase) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	waiting := []corev1.PersistentVolumeClaim{claim("b", corev1.ClaimPending), claim("a", ""), claim("c", corev1.ClaimBound)}
	tests := map[string]struct {
		claims        []corev1.PersistentVolumeClaim
		after         time.Duration
		wantInMessage string
	}{
		"a moment is normal":   {claims: waiting, after: volumePatience - 1},
		"a while is not":       {claims: waiting, after: volumePatience, wantInMessage: "Not bound yet: a, b."},
		"bound":                {claims: waiting[2:], after: time.Hour},
		"lost is told at once": {claims: append(waiting, claim("d", corev1.ClaimLost)), wantInMessage: "behind d is gone"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Volumes(tc.claims, noon, noon.Add(tc.after))
			if (got != nil) != (tc.wantInMessage != "") || got != nil && !strings.Contains(got.Message, tc.wantInMessage) {
				t.Errorf("problem %+v, want a message with %q", got, tc.wantInMessage)
			}
		})
	}
}

func TestRejected(t *testing.T) {
	event := func(reason, message string, at time.Time) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(at)}
	}
	got := Rejected([]corev1.Event{
		event("FailedCreate", `Error creating: pods "login-1-aaaaa" is forbidden: old`, noon),
		event("FailedCreate", `Error creating: pods "login-1-bbbbb" is forbidden: violates PodSecurity`, noon.Add(time.Minute)),
		event("SuccessfulCreate", "Created pod", noon.Add(time.Hour)),
	})
	if want := "The pod is forbidden: violates PodSecurity"; got != want {
		t.Errorf("rejected: %q, want %q", got, want)
	}
	if got := Rejected(nil); got != "" {
		t.Errorf("without events: %q", got)
	}
}

func TestCapacity(t *testing.T) {
	waiting := func(f *v1alpha1.Feature, priority int32, age time.Duration) v1alpha1.Feature {
		f.Spec.Priority, f.CreationTimestamp = priority, metav1.NewTime(noon.Add(-age))
		f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonAtCapacity}}
		return *f
	}
	suspended := waiting(feature("suspended", "s"), 100, 0)
	suspended.Spec.Suspend = true
	idle := *feature("idle", "i")
	works, over := *feature("works", "w"), *feature("over", "ov") // no Job is seen of either
	works.Status.Job = &v1alpha1.JobStatus{Run: v1alpha1.RunKindAgent}
	works.Status.Phase = v1alpha1.PhaseAwaitingInput
	idle.Status.Phase = v1alpha1.PhaseBlocked
	over.Status.Job = &v1alpha1.JobStatus{Run: v1alpha1.RunKindAgent, EndTime: &metav1.Time{Time: noon}}
	me := waiting(feature("me", "me"), 5, time.Hour)
	features := []v1alpha1.Feature{
		me, suspended, idle,
		waiting(feature("urgent", "u"), 6, 0),
		waiting(feature("older", "o"), 5, 2*time.Hour),
		waiting(feature("younger", "y"), 5, time.Minute),
		waiting(feature("a-by-name", "a"), 5, time.Hour),
		waiting(feature("running", "r"), 100, 0),
		waiting(feature("admitted", "ad"), 100, 0),
		works, over,
	}
	admitted := func(f *v1alpha1.Feature) bool { return f.Name == "admitted" || f.Name == "running" || f.Name == "me" }
	jobs := []batchv1.Job{
		job(feature("running", "r"), "1", nil), job(feature("running", "r"), "2", nil),
		job(feature("done", "d"), "1", ended(batchv1.JobComplete)), job(&me, "1", nil),
	}
	want := lifecycle.Capacity{Limit: 3, Running: 3, Waiting: []string{"works"}, Ahead: 3}
	if diff := cmp.Diff(want, Capacity(&me, features, jobs, admitted, 3, 0)); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
}

// TestTotalCapacity counts the agents of all projects, and the Features whose turn comes before: those that have no room in their own project are
// not in the way of others.
func TestTotalCapacity(t *testing.T) {
	of := func(project, name, reason string, priority int32, age time.Duration) v1alpha1.Feature {
		f := feature(name, types.UID(project+"/"+name))
		f.Namespace, f.Spec.Priority, f.CreationTimestamp = project, priority, metav1.NewTime(noon.Add(-age))
		f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Reason: reason}}
		return *f
	}
	me := of("shop", "me", v1alpha1.ReasonPreparing, 0, time.Hour)
	works := of("bank", "works", v1alpha1.ReasonRunning, 0, 0)
	works.Status.Job = &v1alpha1.JobStatus{Run: v1alpha1.RunKindAgent}
	works.Status.Phase = v1alpha1.PhaseBlocked
	features := []v1alpha1.Feature{
		me, works,
		of("shop", "urgent", v1alpha1.ReasonAtTotalCapacity, 9, 0),
		of("shop", "full", v1alpha1.ReasonAtCapacity, 0, 3*time.Hour),
		of("bank", "old", v1alpha1.ReasonAtTotalCapacity, 0, 2*time.Hour),
		of("bank", "young", v1alpha1.ReasonAtTotalCapacity, 0, time.Minute),
		of("bank", "full", v1alpha1.ReasonAtCapacity, 99, 9*time.Hour),
	}
	running := of("post", "running", v1alpha1.ReasonRunning, 0, 0)
	elsewhere := job(&running, "1", nil)
	elsewhere.Namespace = "post"
	nobody := func(*v1alpha1.Feature) bool { return false }
	// urgent takes the older turn of my project, and mine is its youngest: both of the bank come before it.
	want := lifecycle.Capacity{Limit: 3, Ahead: 2, Total: 4, RunningTotal: 2, AheadTotal: 3}
	if diff := cmp.Diff(want, Capacity(&me, features, []batchv1.Job{elsewhere}, nobody, 3, 4)); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
}

// TestTurns: whatever waits, each Feature has one turn, those of a project come in the order of Before, those of one priority by age, and no project gets
// more turns before the Feature of another one by the priorities that it gives to its own.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var waiting, equal []*v1alpha1.Feature
		for i := range rapid.IntRange(1, 12).Draw(t, "features") {
			f := feature(fmt.Sprint("f", i), types.UID(fmt.Sprint(i)))
			f.Namespace = rapid.SampledFrom([]string{"bank", "post", "shop"}).Draw(t, "project")
			f.Spec.Priority = rapid.Int32Range(0, 3).Draw(t, "priority")
			f.CreationTimestamp = metav1.NewTime(noon.Add(-time.Duration(rapid.IntRange(0, 5).Draw(t, "age")) * time.Minute))
			waiting = append(waiting, f)
			g := f.DeepCopy()
			if g.Namespace == "bank" {
				g.Spec.Priority = 0
			}
			equal = append(equal, g)
		}
		turns := Turns(waiting)
		if len(turns) != len(waiting) {
			t.Fatalf("%d turns of %d Features", len(turns), len(waiting))
		}
		last := map[string]*v1alpha1.Feature{}
		for _, f := range turns {
			if was := last[f.Namespace]; was != nil && !Before(was, f) {
				t.Errorf("%s/%s comes before %s", f.Namespace, was.Name, f.Name)
			}
			last[f.Namespace] = f
		}
		before := func(turns []*v1alpha1.Feature) map[string]int {
			count, banks := map[string]int{}, 0
			for _, f := range turns {
				if f.Namespace == "bank" {
					banks++
				}
				count[f.Name] = banks
			}
			return count
		}
		with, without := before(turns), before(Turns(equal))
		for _, f := range waiting {
			if f.Namespace != "bank" && with[f.Name] > without[f.Name] {
				t.Errorf("%d Features of the bank come before %s/%s, and %d without their priorities", with[f.Name], f.Namespace, f.Name, without[f.Name])
			}
		}
		for _, f := range waiting {
			f.Spec.Priority = 0
		}
		if byAge := Turns(waiting); !slices.IsSortedFunc(byAge, func(a, b *v1alpha1.Feature) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }) {
			t.Errorf("Features of one priority do not take turns by age: %v", byAge)
		}
		again := slices.Clone(waiting)
		slices.Reverse(again)
		if !slices.Equal(Turns(again), Turns(waiting)) {
			t.Errorf("in another order of the list the turns are others")
		}
	})
}

// TestNoProjectKeepsItsTurn: one that has an old Feature wait while it starts new and more urgent ones keeps no other project from its turn.
func TestNoProjectKeepsItsTurn(t *testing.T) {
	of := func(project, name string, priority int32, created time.Time) *v1alpha1.Feature {
		f := feature(name, types.UID(project+"/"+name))
		f.Namespace, f.Spec.Priority, f.CreationTimestamp = project, priority, metav1.NewTime(created)
		return f
	}
	waiting := []*v1alpha1.Feature{of("greedy", "old", 0, noon), of("modest", "waits", 0, noon.Add(time.Second))}
	for i := range 100 {
		waiting = append(waiting, of("greedy", fmt.Sprint("urgent-", i), 9, noon.Add(time.Duration(i+2)*time.Second)))
		turns := Turns(waiting)
		if turns[0].Namespace == "modest" {
			return
		}
		waiting = slices.DeleteFunc(waiting, func(f *v1alpha1.Feature) bool { return f == turns[0] })
	}
	t.Error("100 Features of one project have started that are younger than one of another project, which waits")
}

func TestExpired(t *testing.T) {
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: noon}, LeaseDurationSeconds: ptr.To[int32](30)}}
	if Expired(lease, noon.Add(time.Minute)) {
		t.Error("a clock that differs by a lease period kills a replica")
	}
	if !Expired(lease, noon.Add(time.Minute+1)) {
		t.Error("a replica that says nothing lives")
	}
	if !Expired(&coordinationv1.Lease{}, noon) {
		t.Error("a Lease that nobody ever renewed vouches")
	}
}
