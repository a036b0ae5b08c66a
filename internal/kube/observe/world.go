// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe turns objects of the cluster into the facts that core/lifecycle decides on. It reads and decides
// nothing itself.
package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
)

// volumePatience is how long a volume may stay unbound before a condition says so: provisioning takes a while, and with
// volumeBindingMode WaitForFirstConsumer it does not begin before there is a pod.
const volumePatience = 20 * time.Second

// Jobs are the Jobs with a Feature's label, oldest attempt first. Admission lets only the manager make one: a Job that the Feature does not
// control, or no longer controls, is a stray. The list omits Jobs that only answer an inquiry: they write nothing, and end by themselves.
func Jobs(f *v1alpha1.Feature, jobs []batchv1.Job) []lifecycle.Job {
	var seen []lifecycle.Job
	for i := range jobs {
		j := &jobs[i]
		if j.Labels[v1alpha1.LabelRun] == v1alpha1.RunView {
			continue
		}
		attempt, err := strconv.ParseInt(j.Labels[v1alpha1.LabelAttempt], 10, 64)
		if err != nil || attempt < 1 || !metav1.IsControlledBy(j, f) {
			attempt = lifecycle.StrayJob
		}
		seen = append(seen, lifecycle.Job{
			Name: j.Name, UID: string(j.UID), Attempt: attempt, Run: lifecycle.RunKind(j.Labels[v1alpha1.LabelRun]), Mode: j.Labels[v1alpha1.LabelMode],
			Created: j.CreationTimestamp.Time, Ended: JobEnded(j), Deleting: j.DeletionTimestamp != nil,
		})
	}
	slices.SortFunc(seen, func(a, b lifecycle.Job) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Name, b.Name))
	})
	return seen
}

// JobEnded reports whether a Job will start no pod any more.
func JobEnded(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return true
		}
	}
	return false
}

// Pods are the pods with a Feature's label, by name, whoever owns them: a Job can be deleted and leave its pod running
// (kubectl delete --cascade=orphan). Pods that only answer an inquiry are left out: they write nothing, and end by themselves.
func Pods(pods []corev1.Pod) []lifecycle.Pod {
	var seen []lifecycle.Pod
	for i := range pods {
		p := &pods[i]
		if p.Labels[v1alpha1.LabelRun] == v1alpha1.RunView {
			continue
		}
		pod := lifecycle.Pod{
			Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName, Finalizers: p.Finalizers,
			Started: podStarted(p), Ended: PodEnded(p), Problem: podProblem(p), ByItself: byItself(p), Fate: fate(p),
			StartedAt: podStartedAt(p),
		}
		if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "Job" {
			pod.JobUID = string(owner.UID)
		}
		if p.DeletionTimestamp != nil {
			// The API server adds the grace period to the time at which the deletion was asked for.
			pod.Deleting, pod.DueBy = true, p.DeletionTimestamp.Time
		}
		seen = append(seen, pod)
	}
	slices.SortFunc(seen, func(a, b lifecycle.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return seen
}

// PodEnded is true in the phases that a pod never leaves. A pod of a node that does not answer is not among them: its
// containers may run.
func PodEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func podStarted(p *corev1.Pod) bool {
	started := func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
	}
	return slices.ContainsFunc(p.Status.InitContainerStatuses, started) || slices.ContainsFunc(p.Status.ContainerStatuses, started)
}

// podStartedAt is when the first container of a pod started that runs or ended. One that was started again may have run before.
func podStartedAt(p *corev1.Pod) time.Time {
	var first time.Time
	note := func(at metav1.Time) {
		if !at.IsZero() && (first.IsZero() || at.Time.Before(first)) {
			first = at.Time
		}
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
				if state.Running != nil {
					note(state.Running.StartedAt)
				}
				if state.Terminated != nil {
					note(state.Terminated.StartedAt)
				}
			}
		}
	}
	return first
}

// Volumes says what keeps a Feature's volumes from being bound; nil when nothing does, or it is too early to say. since
// is when the attempt began.
func Volumes(claims []corev1.PersistentVolumeClaim, since, now time.Time) *lifecycle.Problem {
	var lost, waiting []string
	for _, c := range claims {
		switch c.Status.Phase {
		case corev1.ClaimLost:
			lost = append(lost, c.Name)
		case corev1.ClaimPending, "":
			waiting = append(waiting, c.Name)
		case corev1.ClaimBound:
		}
	}
	slices.Sort(lost)
	slices.Sort(waiting)
	switch {
	case len(lost) > 0:
		return &lifecycle.Problem{Reason: v1alpha1.ReasonVolumePending, Message: fmt.Sprintf(
			"The volume behind %s is gone. See `kubectl describe pvc`.", strings.Join(lost, ", "))}
	case len(waiting) > 0 && !since.IsZero() && now.Sub(since) >= volumePatience:
		return &lifecycle.Problem{Reason: v1alpha1.ReasonVolumePending, Message: fmt.Sprintf(
			"Not bound yet: %s. Check spec.workspace.storageClassName and size; see `kubectl describe pvc`.", strings.Join(waiting, ", "))}
	default:
		return nil
	}
}

// Rejected is the newest message with which a Job says that its pod cannot be made; empty when there is none.
func Rejected(events []corev1.Event) string {
	var newest *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Reason != "FailedCreate" {
			continue
		}
		if newest == nil || newest.LastTimestamp.Before(&e.LastTimestamp) {
			newest = e
		}
	}
	if newest == nil {
		return ""
	}
	return stableNames(newest.Message)
}

// stableNames takes the random name out of "pods "x-1-abcde" is forbidden: …": the Job makes up a new one each time.
func stableNames(message string) string {
	_, rest, found := strings.Cut(message, `pods "`)
	if !found {
		return message
	}
	_, rest, found = strings.Cut(rest, `"`)
	if !found {
		return message
	}
	return "The pod" + rest
}

// Capacity counts the agents that run for other Features, and the Features that wait and come before f. In its project these have a higher
// priority, or are older, or come first by name. For all projects see Turns. Admitted ones count as running. Capacity needs Features and
// Jobs of other projects if total is not 0.
func Capacity(f *v1alpha1.Feature, features []v1alpha1.Feature, jobs []batchv1.Job, admitted func(*v1alpha1.Feature) bool, limit, total int) lifecycle.Capacity {
	c := lifecycle.Capacity{Limit: limit, Total: total}
	running := map[types.UID]bool{}
	runs := func(uid types.UID, namespace string) {
		if running[uid] {
			return
		}
		running[uid] = true
		if namespace == f.Namespace {
			c.Running++
		}
	}
	for i := range jobs {
		j := &jobs[i]
		owner := metav1.GetControllerOf(j)
		if owner != nil && owner.Kind == "Feature" && owner.UID != f.UID && !JobEnded(j) {
			runs(owner.UID, j.Namespace)
		}
	}
	turns := []*v1alpha1.Feature{f}
	for i := range features {
		g := &features[i]
		here := g.Namespace == f.Namespace
		switch {
		case g.UID == f.UID || running[g.UID]:
		case admitted(g), AgentWorks(g): // the cache of Jobs may be behind
			runs(g.UID, g.Namespace)
		case WaitsForTurn(g):
			turns = append(turns, g)
			if here && Before(g, f) {
				c.Ahead++
			}
		case here && WaitsForRoom(g) && Before(g, f):
			c.Ahead++
		}
		if p := g.Status.Phase; here && running[g.UID] && (p == v1alpha1.PhaseAwaitingInput || p == v1alpha1.PhaseBlocked) {
			c.Waiting = append(c.Waiting, g.Name)
		}
	}
	slices.Sort(c.Waiting)
	if total > 0 {
		c.RunningTotal, c.AheadTotal = len(running), slices.Index(Turns(turns), f)
	}
	return c
}

// Turns sorts Features that wait for an agent of any project to end. Within a project it sorts by Before. Between projects it sorts by age,
// and the age of a Feature is that of the youngest Feature of its project that comes no later. So priorities within a project do not move
// the project ahead of others. An urgent Feature does not inherit the turn of an older one, because the older one would then keep its turn
// for the next urgent one.
func Turns(waiting []*v1alpha1.Feature) []*v1alpha1.Feature {
	type turn struct {
		feature *v1alpha1.Feature
		since   metav1.Time
		place   int
	}
	projects := map[string][]*v1alpha1.Feature{}
	for _, f := range waiting {
		projects[f.Namespace] = append(projects[f.Namespace], f)
	}
	var turns []turn
	for _, list := range projects {
		slices.SortFunc(list, func(a, b *v1alpha1.Feature) int {
			if Before(a, b) {
				return -1
			}
			return 1
		})
		var since metav1.Time
		for i, f := range list {
			if f.CreationTimestamp.After(since.Time) {
				since = f.CreationTimestamp
			}
			turns = append(turns, turn{f, since, i})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(a.since.Compare(b.since.Time), cmp.Compare(a.feature.Namespace, b.feature.Namespace), cmp.Compare(a.place, b.place))
	})
	sorted := make([]*v1alpha1.Feature, 0, len(turns))
	for _, t := range turns {
		sorted = append(sorted, t.feature)
	}
	return sorted
}

// AgentWorks reports whether the status of a Feature shows an agent that has not ended, or a gate in a pod of its own, which takes the same
// room.
func AgentWorks(f *v1alpha1.Feature) bool {
	j := f.Status.Job
	return j != nil && j.EndTime == nil && (j.Run == v1alpha1.RunKindAgent || j.Run == v1alpha1.RunKindGate)
}

// WaitsForRoom reports whether a Feature waits for an agent of its project to end.
func WaitsForRoom(f *v1alpha1.Feature) bool { return waitsWith(f, v1alpha1.ReasonAtCapacity) }

// WaitsForTurn reports whether a Feature has room in its project and waits for an agent of any project to end.
func WaitsForTurn(f *v1alpha1.Feature) bool { return waitsWith(f, v1alpha1.ReasonAtTotalCapacity) }

func waitsWith(f *v1alpha1.Feature, reason string) bool {
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded)
	return c != nil && c.Reason == reason && f.DeletionTimestamp == nil && !f.Spec.Suspend
}

// Before reports whether a Feature that waits starts before another one of its project: no two of a project are equal.
func Before(a, b *v1alpha1.Feature) bool {
	return cmp.Or(
		cmp.Compare(b.Spec.Priority, a.Spec.Priority),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

// Expired reports whether the holder of a Lease is taken for dead. A second lease period is granted on top of the
// first, so that clocks may differ by as much.
func Expired(l *coordinationv1.Lease, now time.Time) bool {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return true
	}
	period := time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	return now.Sub(l.Spec.RenewTime.Time) > 2*period
}
