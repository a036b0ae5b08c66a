// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestStuckPodIsNamed: a pod that does not go keeps a Feature from going on, for ever where its node is off. The Feature
// says so, with pod, node and what to do.
func TestStuckPodIsNamed(t *testing.T) {
	suspended := func(o *Observed) {
		o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeSuspended}
		o.Memory.Job.EndedAt = noon.Add(-5 * time.Minute)
		o.Jobs = nil
	}
	tests := map[string]struct {
		change func(*Observed)
		phase  Phase
		// reason of condition Succeeded.
		reason string
	}{
		"the next attempt cannot start":    {change: suspended, phase: Preparing, reason: ReasonPodStuckTerminating},
		"the current attempt was evicted":  {change: func(*Observed) {}, phase: Running, reason: ReasonPodStuckTerminating},
		"it cannot be deleted":             {change: func(o *Observed) { o.Spec.DeletedAt = noon.Add(-10 * time.Minute) }, phase: Running, reason: ReasonPodStuckTerminating},
		"what rests keeps its own reason":  {change: func(o *Observed) { suspended(o); o.Spec.Suspend = true }, phase: Suspended, reason: protocol.ReasonSuspended},
		"what failed keeps its own reason": {change: func(o *Observed) { o.Spec.Deadline = time.Minute }, phase: Failed, reason: protocol.ReasonDeadlineExceeded},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Pods[0].Deleting, o.Pods[0].DueBy, o.Pods[0].Node = true, noon.Add(-time.Minute), "worker-7"
			tc.change(&o)
			before := Next(o, noon.Add(-time.Second))
			if before.Memory.Condition(ConditionAgentRunning).Reason == ReasonPodStuckTerminating || before.Recheck != time.Second {
				t.Errorf("before its time: %v, looked at again after %v", before.Memory.Condition(ConditionAgentRunning), before.Recheck)
			}
			d := Next(o, noon)
			if got := d.Memory.Condition(ConditionSucceeded); d.Memory.Phase != tc.phase || got.Reason != tc.reason {
				t.Errorf("%s/%s: %s", d.Memory.Phase, got.Reason, got.Message)
			}
			running := d.Memory.Condition(ConditionAgentRunning)
			if running.Status != Unknown || running.Reason != ReasonPodStuckTerminating {
				t.Errorf("AgentRunning is %v", running)
			}
			for _, want := range []string{"login-1-abc", "worker-7", "2026-01-01T11:59:00Z", "kubectl delete node worker-7"} {
				if !strings.Contains(running.Message, want) {
					t.Errorf("%q does not name %s", running.Message, want)
				}
			}
			if tc.reason == ReasonPodStuckTerminating && d.Memory.Condition(ConditionStalled).Status != True {
				t.Error("only a person can help, and Stalled does not say so")
			}
			warned := false
			for _, e := range d.Events {
				warned = warned || e.Reason == ReasonPodStuckTerminating && e.Warning
			}
			if !warned {
				t.Errorf("no warning among the events %v", d.Events)
			}
			o.Memory = d.Memory
			if again := Next(o, noon.Add(time.Hour)); again.Memory.Condition(ConditionAgentRunning) != running || len(again.Events) > 0 && tc.phase != Failed {
				t.Errorf("an hour later it is told again: %v, %v", again.Memory.Condition(ConditionAgentRunning), again.Events)
			}
		})
	}
}

// TestStuckPodThatEnded: nothing runs any more, but something keeps the object.
func TestStuckPodThatEnded(t *testing.T) {
	o := running()
	o.Pods[0].Ended, o.Pods[0].Deleting, o.Pods[0].DueBy, o.Pods[0].Node = true, true, noon.Add(-time.Hour), "worker-7"
	o.Pods[0].Finalizers = []string{"example.com/hold"}
	message := Next(o, noon).Memory.Condition(ConditionAgentRunning).Message
	if !strings.Contains(message, "login-1-abc") || !strings.Contains(message, "example.com/hold") || strings.Contains(message, "delete node") {
		t.Errorf("got %q", message)
	}
}
