// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// stuckGrace is how long a pod may still be there after its grace period before it is said to be stuck. A kubelet that
// answers removes a pod within seconds; a minute leaves room for one that restarts.
const stuckGrace = time.Minute

// stuckPod is a pod that should be gone and is not, mostly because its node does not answer; nil where there is none. due
// are the times at which pods that have time left are said to be stuck.
func (s situation) stuckPod() (stuck *Pod, due []time.Time) {
	for i := range s.o.Pods {
		p := &s.o.Pods[i]
		if p.DueBy.IsZero() {
			continue
		}
		if at := p.DueBy.Add(stuckGrace); s.now.Before(at) {
			due = append(due, at)
		} else if stuck == nil {
			stuck = p
		}
	}
	return stuck, due
}

// shown is where a Feature stands for people. It says why work stops when a pod does not go: a new attempt must not start next to a pod
// that may still write to the volumes, so that only a user can help.
func (s situation) shown(at summary) summary {
	if stuck, _ := s.stuckPod(); stuck != nil && at.waitsForPods() {
		at.reason, at.message, at.stalled = ReasonPodStuckTerminating, stuckMessage(*stuck), true
	}
	at.message = bounded(at.message)
	return at
}

// waitsForPods reports whether a pod that does not go keeps the Feature from continuing. If it rests anyway (delivered, failed, blocked,
// suspended, waiting for approval), its own reason is the one that people need.
func (at summary) waitsForPods() bool {
	switch at.phase {
	case Pending, Preparing, Running, AwaitingInput:
		return true
	case ReadyToMerge:
		return at.reason != protocol.ReasonApprovalRequired && at.reason != protocol.ReasonApprovalMismatch
	default:
		return at.reason == ReasonDeleting
	}
}

// stuckMessage says what is stuck where, and what to do. It holds no time that is left, so that it stays as it is.
func stuckMessage(p Pod) string {
	due := p.DueBy.UTC().Format(time.RFC3339)
	if p.Node == "" || p.Ended {
		return fmt.Sprintf("Pod %s should have been gone by %s, but its finalizers keep it: %s. Nothing new starts until it is gone. "+
			"Find out what set them; `kubectl edit pod %s` removes them.", p.Name, due, strings.Join(p.Finalizers, ", "), p.Name)
	}
	return fmt.Sprintf("Pod %s on node %s should have been gone by %s and is still there: the node does not answer. Nothing new starts until it is gone, "+
		"because it may still write to the volumes. If the node comes back, the pod ends by itself. If the node is off for good, say so with "+
		"`kubectl delete node %s`, or with `kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`.",
		p.Name, p.Node, due, p.Node, p.Node)
}
