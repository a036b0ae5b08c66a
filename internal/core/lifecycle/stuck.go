// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// stuckGrace is how long a pod may still be there after its grace period before it is said to be stuck. A kubelet that
// answers removes a pod within seconds; a minute leaves room for one that restarts.
const stuckGrace = time.Minute

// tellStuck says why nothing goes on where a pod should be gone and is not, mostly because its node does not answer: no
// new attempt may start beside a pod that may still write to the volumes, so that only a person can help.
func (c *course) tellStuck() {
	for i := range c.o.Pods {
		p := &c.o.Pods[i]
		if p.DueBy.IsZero() {
			continue
		}
		if at := p.DueBy.Add(stuckGrace); c.now.Before(at) {
			c.wake(at)
		} else if c.stuck == nil {
			c.stuck = p
		}
	}
	if c.stuck == nil || !c.waitsForPods() {
		return
	}
	c.at.reason, c.at.message, c.at.stalled = ReasonPodStuckTerminating, stuckMessage(*c.stuck), true
}

// waitsForPods reports whether a pod that does not go keeps the Feature from going on. Where it rests anyway (delivered,
// failed, blocked, suspended, waiting for approval), its own reason is the one that people need.
func (c *course) waitsForPods() bool {
	switch c.at.phase {
	case Pending, Preparing, Running, AwaitingInput:
		return true
	case ReadyToMerge:
		return c.at.reason != contract.ReasonApprovalRequired && c.at.reason != contract.ReasonApprovalMismatch
	default:
		return c.at.reason == ReasonDeleting
	}
}

// stuckMessage says what is stuck where, and what to do. It holds no time that is left, so that it stays as it is.
func stuckMessage(p Pod) string {
	due := p.DueBy.UTC().Format(time.RFC3339)
	if p.Node == "" || p.Ended {
		return fmt.Sprintf("Pod %s should have been gone by %s, but its finalizers keep it: %s. Nothing new starts beside it. "+
			"Find out what set them; `kubectl edit pod %s` removes them.", p.Name, due, strings.Join(p.Finalizers, ", "), p.Name)
	}
	return fmt.Sprintf("Pod %s on node %s should have been gone by %s and is still there: the node does not answer. Nothing new starts beside it, "+
		"because it may still write to the volumes. If the node comes back, the pod ends by itself. If the node is off for good, say so with "+
		"`kubectl delete node %s`, or with `kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`.",
		p.Name, p.Node, due, p.Node, p.Node)
}
