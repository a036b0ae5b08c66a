// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// TestWhatIsWrongIsNotOver while an agent that has ended with a turn without tools is started again; it is when an agent ends its task.
func TestWhatIsWrongIsNotOver(t *testing.T) {
	s := supervise.State{Sessions: true, Agent: supervise.Agent{Connected: true}, Tasks: []supervise.Task{{Name: "form", Phase: supervise.Pending}}}
	apply := func(events ...supervise.Event) {
		for _, e := range events {
			s = s.Apply(e, time.Time{})
		}
	}
	wrong := func() bool { return len(s.Status("base").Conversation.Anomalies) > 0 }
	goesOn := supervise.Steered{Measure: supervise.Measure{ID: "m", Rung: policy.RungNoTools}}
	apply(supervise.Started{}, supervise.Conversed{Conversation: &protocol.Conversation{Anomalies: []protocol.Anomaly{{Type: "AgentLooping"}}}})
	apply(goesOn, supervise.AgentExited{})
	if !wrong() {
		t.Error("over when the agent has ended")
	}
	apply(supervise.Killed{}, supervise.Settled{})
	if !wrong() || s.Status("base").AgentRunning {
		t.Error("over before the agent is started")
	}
	apply(supervise.Started{})
	if !wrong() {
		t.Error("over when the agent goes on")
	}
	if apply(supervise.AgentExited{}); wrong() {
		t.Error("not over when the task has ended")
	}
}
