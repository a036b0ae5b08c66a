// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/app/preflight/probe"
	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
)

const (
	// interval between two looks at a pod.
	interval = 300 * time.Millisecond
	// patience with a pod: its node may have to pull the image.
	patience = 90 * time.Second
	// sandboxPatience is after how long a pod whose sandbox cannot be made is given up.
	sandboxPatience = 15 * time.Second
	// perPod is how many servers one pod is to reach: its report has room for that many.
	perPod = 8
)

// probe gathers what needs pods. What fails is noted by check, and the others go their way.
func (l *look) probe(ctx context.Context, f *preflight.Facts) {
	withPods := []string{preflight.NetworkPolicy, preflight.UserNamespace, preflight.Volumes, preflight.Processes, preflight.Git, preflight.Providers}
	note := func(err error, ids ...string) {
		for _, id := range ids {
			if err != nil && f.Unread[id] == "" {
				f.Unread[id] = err.Error()
			}
		}
	}
	if err := l.settle(ctx, f); err != nil {
		f.PodSecurity.Error = err.Error()
		note(err, withPods...)
		return
	}
	if err := l.copyPullSecrets(ctx); err != nil {
		note(err, withPods...)
		return
	}
	git, providers, err := l.wanted(ctx)
	note(err, preflight.Providers)
	servers := slices.Concat(git, providers)

	class := defaultOf(f.Classes)
	begin := func(p *corev1.Pod, ids ...string) { note(l.create(ctx, p), ids...) }
	l.began = time.Now()
	begin(l.server(), preflight.NetworkPolicy)
	begin(l.users(probe.Users, false), preflight.UserNamespace)
	begin(l.processes(), preflight.Processes)
	for i := 0; i < len(servers); i += perPod {
		begin(l.reach(i/perPod, servers[i:min(i+perPod, len(servers))]), preflight.Git, preflight.Providers)
	}
	if class == "" {
		note(errors.New("there is no default StorageClass to try"), preflight.Volumes)
	} else {
		note(l.create(ctx, l.claim()), preflight.Volumes)
		begin(l.volume(), preflight.Volumes)
	}
	l.say("Waiting for the pods of namespace %s", l.namespace)
	note(l.network(ctx, f), preflight.NetworkPolicy)

	if f.Unread[preflight.Processes] == "" {
		report, err := l.await(ctx, probe.Processes, f)
		note(err, preflight.Processes)
		f.Processes = report.Steps
	}
	if f.Unread[preflight.UserNamespace] == "" {
		report, err := l.await(ctx, probe.Users, f)
		if f.UserNamespaces.Map = report.UIDMap; err != nil {
			f.UserNamespaces.Error = err.Error()
		}
	}
	if f.Unread[preflight.Volumes] == "" {
		report, err := l.await(ctx, probe.Volume, f)
		if f.Volume = (preflight.Volume{Class: class, Notes: report.Notes}); err != nil {
			f.Volume.Error = err.Error()
		}
		l.mappedVolume(ctx, f)
	}
	var reached []preflight.Target
	for i := 0; i < len(servers); i += perPod {
		asked := servers[i:min(i+perPod, len(servers))]
		report, err := l.await(ctx, reachName(i/perPod), f)
		for j, w := range asked {
			t := preflight.Target{Error: "no answer of the probe"}
			if err != nil {
				t.Error = err.Error()
			} else if j < len(report.Targets) {
				t = report.Targets[j]
			}
			t.URL = strings.TrimSuffix(w.URL, gitProbe)
			reached = append(reached, t)
		}
	}
	f.Git, f.Providers = reached[:len(git)], reached[len(git):]
}

func defaultOf(classes []preflight.StorageClass) (name string) {
	for _, c := range classes {
		if c.Default {
			name = c.Name
		}
	}
	return name
}

// settle makes the namespace and its policies, and sees whether it keeps its level of Pod Security.
func (l *look) settle(ctx context.Context, f *preflight.Facts) error {
	namespace := newNamespace()
	if err := l.client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	l.namespace = namespace.Name
	l.say("Made namespace %s, which is removed at the end", l.namespace)
	for _, policy := range l.policies() {
		if err := l.client.Create(ctx, policy); err != nil {
			return fmt.Errorf("make NetworkPolicy %s: %w", policy.Name, err)
		}
	}
	// Pods are refused until their service account is there.
	if err := until(ctx, time.Now().Add(patience), func() (bool, error) {
		err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	}); err != nil {
		return fmt.Errorf("wait for the service account of the namespace: %w", err)
	}
	// Whether it breaks the level is decided without making it.
	err := l.client.Create(ctx, l.privileged(), client.DryRunAll)
	f.PodSecurity.Enforced = apierrors.IsForbidden(err)
	return nil
}

func (l *look) create(ctx context.Context, o client.Object) error {
	if err := l.client.Create(ctx, o); err != nil {
		return fmt.Errorf("make %s: %w", o.GetName(), err)
	}
	return nil
}

// network has two pods try to connect to the server, once it has an address.
func (l *look) network(ctx context.Context, f *preflight.Facts) error {
	if f.Unread[preflight.NetworkPolicy] != "" {
		return nil
	}
	var server corev1.Pod
	err := until(ctx, l.began.Add(patience), func() (bool, error) {
		err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: probe.Serve}, &server)
		return server.Status.Phase == corev1.PodRunning && server.Status.PodIP != "" || l.gaveUp(ctx, &server), err
	})
	if err != nil || server.Status.PodIP == "" {
		return fmt.Errorf("the pod that listens does not run: %s", l.why(ctx, &server, err))
	}
	for _, p := range l.clients(server.Status.PodIP) {
		if err := l.create(ctx, p); err != nil {
			return err
		}
	}
	allowed, err := l.await(ctx, probe.Connect, f)
	if err != nil {
		return err
	}
	forbidden, err := l.await(ctx, probe.Refused, f)
	if err != nil {
		return err
	}
	if len(allowed.Connections) == 2 {
		f.Network.Allowed, f.Network.Elsewhere = allowed.Connections[0], allowed.Connections[1]
	}
	f.Network.Forbidden = forbidden.Connections
	return nil
}

// mappedVolume has a pod in a user namespace use the volume, if both work by themselves.
func (l *look) mappedVolume(ctx context.Context, f *preflight.Facts) {
	if f.Volume.Error != "" || f.UserNamespaces.Error != "" || f.Unread[preflight.UserNamespace] != "" {
		return
	}
	pod := l.users(mappedName, true)
	l.began = time.Now()
	err := l.create(ctx, pod)
	if err == nil {
		_, err = l.await(ctx, pod.Name, f)
	}
	if err != nil {
		f.UserNamespaces.Volume = err.Error()
	}
}

// await waits for the end of a pod, and returns its report. The error says why there is none.
func (l *look) await(ctx context.Context, name string, f *preflight.Facts) (report preflight.Report, err error) {
	var pod corev1.Pod
	err = until(ctx, l.began.Add(patience), func() (bool, error) {
		err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, &pod)
		return ended(&pod) != nil || l.gaveUp(ctx, &pod), err
	})
	end := ended(&pod)
	if end == nil {
		return report, fmt.Errorf("pod %s does not run: %s", name, l.why(ctx, &pod, err))
	}
	// What a pod writes is bounded by Kubernetes. It decides about nothing but the findings.
	if err := json.Unmarshal([]byte(end.Message), &report); err != nil {
		return preflight.Report{}, fmt.Errorf("pod %s ended without a report, with exit code %d: %s", name, end.ExitCode, end.Reason+" "+end.Message)
	}
	if report.Error != "" {
		return report, errors.New(report.Error)
	}
	f.Clock.Nodes = withClock(f.Clock.Nodes, pod.Spec.NodeName, preflight.Off(pod.CreationTimestamp.Time, report.Time, time.Now().Add(l.ahead+time.Second)))
	return report, nil
}

// withClock adds what a pod told of a node. Of several pods the one counts that saw the largest difference.
func withClock(all []preflight.NodeClock, node string, off time.Duration) []preflight.NodeClock {
	for i := range all {
		if all[i].Node == node {
			if off.Abs() > all[i].Off.Abs() {
				all[i].Off = off
			}
			return all
		}
	}
	return append(all, preflight.NodeClock{Node: node, Off: off})
}

// ended is how the container of a pod ended, or nil.
func ended(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, s := range pod.Status.ContainerStatuses {
		return s.State.Terminated
	}
	return nil
}

// gaveUp is true for a pod of which no more is to be expected.
func (l *look) gaveUp(ctx context.Context, pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed {
		return true
	}
	if pod.Status.Phase != corev1.PodPending || time.Since(l.began) < sandboxPatience {
		return false
	}
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && (w.Reason == "InvalidImageName" || w.Reason == "ErrImageNeverPull" || w.Reason == "CreateContainerError") {
			return true
		}
	}
	last := l.warning(ctx, pod.Name)
	return last != nil && last.Reason == "FailedCreatePodSandBox"
}

// why says what keeps a pod from running.
func (l *look) why(ctx context.Context, pod *corev1.Pod, err error) string {
	// The reason is worth a moment after the time is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), interval*10)
	defer cancel()
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return w.Reason + " " + w.Message
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	if last := l.warning(ctx, pod.Name); last != nil {
		return last.Reason + " " + last.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the time of --timeout is over"
	}
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(pod.Status.Phase) + " " + pod.Status.Reason + " " + pod.Status.Message)
}

// warning is the last Event of the type Warning about a pod, or nil.
func (l *look) warning(ctx context.Context, pod string) (last *corev1.Event) {
	var list corev1.EventList
	if err := l.client.List(ctx, &list, client.InNamespace(l.namespace)); err != nil {
		return nil
	}
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.Name == pod && e.Type == corev1.EventTypeWarning && (last == nil || last.LastTimestamp.Before(&e.LastTimestamp)) {
			last = e
		}
	}
	return last
}

// until asks done again and again until it says true, fails, or the time is over.
func until(ctx context.Context, deadline time.Time, done func() (bool, error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		so, err := done()
		if so || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if time.Now().After(deadline) {
			return errors.New("it takes too long")
		}
	}
}

// remove deletes the namespace with all that is in it, and waits until it is gone.
func (l *look) remove(ctx context.Context) error {
	if l.namespace == "" {
		return nil
	}
	l.say("Removing namespace %s", l.namespace)
	namespace := &corev1.Namespace{}
	namespace.Name = l.namespace
	err := client.IgnoreNotFound(l.client.Delete(ctx, namespace))
	if err == nil {
		err = until(ctx, time.Now().Add(removeTime), func() (bool, error) {
			err := l.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	if err != nil {
		return fmt.Errorf("remove namespace %s, which may still be there: %w", l.namespace, err)
	}
	return nil
}

func (l *look) say(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }
