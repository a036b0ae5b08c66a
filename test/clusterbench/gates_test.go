// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterbench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

const (
	// gateContainer is the name of the container that a gate before the delivery is in, as internal/kube/desired has it.
	gateContainer = "gate"
	// gatedRounds is how often each of the times around gates is taken.
	gatedRounds = 5
	// gatedTasks of a Feature whose tasks are timed: the pauses between them count.
	gatedTasks = 6
)

// TestGates measures what a gate that does nothing adds to the time between two tasks, and how long a gate before the delivery takes to start after the
// agent, beside two pods of the same shape that nobody supervises, one after the other.
func TestGates(t *testing.T) {
	s, b := newSite(t), &board.Board{Print: true}
	var plain, gated, starts, pods []time.Duration
	for round := range gatedRounds {
		plain = append(plain, s.betweenTasks(fmt.Sprintf("plain-%d", round), nil)...)
		gated = append(gated, s.betweenTasks(fmt.Sprintf("gated-%d", round), []string{"nothing"})...)
	}
	b.Ratio("cluster-next-task-with-gate", board.Median(gated), board.Median(plain), board.AtMost(1.5))
	s.clear(&v1alpha1.Feature{})
	for round := range gatedRounds {
		name := fmt.Sprintf("proved-%d", round)
		f := s.feature(name, 1)
		f.Spec.Gates = []v1alpha1.Gate{nothing()}
		f.Spec.Delivery.Gates = []string{"nothing"}
		s.delivered(f)
		starts = append(starts, s.untilGate(name))
		if s.pod == nil {
			s.keepShape(name)
		}
		s.clear(&v1alpha1.Feature{})
		pods = append(pods, s.successor(fmt.Sprintf("bare-%d", round)))
		s.clear(&corev1.Pod{}, &corev1.PersistentVolumeClaim{})
	}
	b.Ratio("cluster-delivery-gate-start", board.Median(starts), board.Median(pods), board.AtMost(1.3))
}

// successor is the time from the end of a bare pod's command until the container of another one runs, which uses the same volumes and is made as soon as
// the first pod has ended.
func (s *site) successor(name string) time.Duration {
	objects := s.bare(name, "date +%s%N > /dev/termination-log")
	first := objects[len(objects)-1].(*corev1.Pod)
	next := first.DeepCopy()
	next.Name += "-next"
	for i := range next.Spec.Containers {
		next.Spec.Containers[i].Command, next.Spec.Containers[i].Args = []string{"bash", "-c", "exec sleep 600"}, nil
	}
	w, err := s.watch.Watch(s.ctx, &corev1.PodList{}, client.InNamespace(benchProject), client.MatchingFields{"metadata.name": name})
	s.must(err)
	defer w.Stop()
	for _, o := range objects {
		s.must(s.Create(s.ctx, o))
	}
	for event := range w.ResultChan() {
		p, ok := event.Object.(*corev1.Pod)
		if !ok || p.Status.Phase != corev1.PodSucceeded {
			continue
		}
		nanoseconds, err := strconv.ParseInt(strings.TrimSpace(p.Status.ContainerStatuses[0].State.Terminated.Message), 10, 64)
		s.must(err)
		ending := time.Since(time.Unix(0, nanoseconds))
		return ending + s.started(1, gateContainer, client.MatchingFields{"metadata.name": next.Name}, func(int) []client.Object { return []client.Object{next} })
	}
	s.t.Fatalf("pod %s does not end: %v", name, context.Cause(s.ctx))
	return 0
}

func nothing() v1alpha1.Gate {
	return v1alpha1.Gate{Name: "nothing", Command: []string{"true"}, Timeout: &metav1.Duration{Duration: time.Minute}}
}

// betweenTasks delivers a Feature of some tasks with these gates, and gives the times from the end of each agent to the begin of the next task.
func (s *site) betweenTasks(name string, gates []string) (pauses []time.Duration) {
	f := s.Script(benchProject, name, s.git.URL("shop"), `echo "$TIDEWAITER_TASK" > page.html`)
	f.Spec.Delivery = &v1alpha1.Delivery{Branch: "tidewaiter/" + name}
	m := v1alpha1.Milestone{Name: "page"}
	for i := range gatedTasks {
		m.Tasks = append(m.Tasks, v1alpha1.Task{Name: fmt.Sprintf("task-%d", i), Gates: gates})
	}
	f.Spec.Plan = &v1alpha1.Plan{Milestones: []v1alpha1.Milestone{m}}
	if len(gates) > 0 {
		f.Spec.Gates = []v1alpha1.Gate{nothing()}
	}
	s.delivered(f)
	var ended time.Time
	for _, e := range s.history(name) {
		switch {
		case e.Kind != protocol.HistoryTask:
		case e.Event == protocol.HistoryEnded:
			ended = e.Time
		case e.Event == protocol.HistoryBegun && !ended.IsZero():
			pauses = append(pauses, e.Time.Sub(ended))
		}
	}
	if len(pauses) != gatedTasks-1 {
		s.t.Fatalf("Feature %s: %d pauses between %d tasks", name, len(pauses), gatedTasks)
	}
	return pauses
}

// untilGate is the time from the end of the agent's attempt to the start of the command of the gate before the delivery.
func (s *site) untilGate(name string) time.Duration {
	var ended time.Time
	for _, e := range s.history(name) {
		switch {
		case e.Kind == protocol.HistoryAttempt && e.Event == protocol.OutcomeProving && ended.IsZero():
			ended = e.Time
		case e.Kind == protocol.HistoryGate && !ended.IsZero():
			return e.Time.Add(-time.Duration(e.Duration) * time.Millisecond).Sub(ended)
		}
	}
	s.t.Fatalf("Feature %s: its history has no gate before the delivery", name)
	return 0
}

// history of a Feature that is delivered, once the ledger has the end.
func (s *site) history(name string) (all []protocol.HistoryEntry) {
	s.t.Helper()
	s.must(cluster.Until(s.ctx, "the whole history of "+name, func(ctx context.Context) (bool, error) {
		answer, err := s.Clientset.CoreV1().RESTClient().Get().AbsPath("/apis/view.tidewaiter.dev/v1alpha1/namespaces/" + benchProject + "/features/" + name + "/history").DoRaw(ctx)
		if err != nil {
			return false, err
		}
		var h protocol.History
		if err := json.Unmarshal(answer, &h); err != nil {
			return false, err
		}
		all = h.Entries
		return len(all) > 0 && all[len(all)-1].Event == protocol.OutcomeDelivered, nil
	}))
	return all
}
