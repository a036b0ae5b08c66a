// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// TestAUserTakesBackThatTheWorkContinues: as long as the journal does not have the decision, the task blocks. After that it is aborted, also if the
// rollback was refused in an earlier attempt.
func TestAUserTakesBackThatTheWorkContinues(t *testing.T) {
	now, o := epoch, protocol.Orders{Tasks: []protocol.Task{{Name: "form", Continue: true}, {Name: "save"}}}
	s := supervise.State{}.Apply(supervise.Ordered{Orders: o}, now).Apply(supervise.Connected{}, now)
	s = s.Begin(supervise.Next(s, now)).Apply(supervise.Started{}, now).Apply(supervise.AgentExited{Code: 1}, now)
	s = s.Begin(supervise.Next(s, now)).Apply(supervise.Killed{}, now)
	closing := supervise.Next(s, now)
	s = s.Begin(closing).Apply(supervise.Taken{Action: closing, Settled: true, TreeVerdict: protocol.Valid}, now)
	abort := supervise.Next(s, now)
	if abort.Kind != supervise.Abort || abort.Task != "form" || abort.Reason != protocol.ReasonAgentFailed {
		t.Fatalf("first %+v", abort)
	}
	blocks := protocol.Orders{Tasks: []protocol.Task{{Name: "form"}, {Name: "save"}}}
	if a := supervise.Next(s.Apply(supervise.Ordered{Orders: blocks}, now), now); a.Kind != supervise.Finish || a.Final.Outcome != protocol.OutcomeAgentFailed || a.Final.TaskFailures != 0 {
		t.Errorf("before the record: %+v", a)
	}
	noting := s.Begin(abort).Apply(supervise.Ordered{Orders: blocks}, now)
	noted := noting.Apply(supervise.GivenUp{Task: "form", ID: "steering/abort/1/0"}, now)
	if a := supervise.Next(noted.Apply(supervise.Ordered{Orders: blocks}, now), now); a.Kind != supervise.Rollback || !a.Aborts || a.Request.ID != "steering/abort/1/0" {
		t.Errorf("after the record: %+v", a)
	}
	refused := supervise.State{Tasks: []supervise.Task{{Name: "form", Phase: supervise.Aborting, Begun: true, Decided: true, Reason: protocol.ReasonGateFailed, Message: "no"}}}
	if a := supervise.Next(refused.Apply(supervise.Ordered{Orders: blocks}, now).Apply(supervise.Connected{}, now), now); a.Kind != supervise.Abort {
		t.Errorf("after a refused rollback: %+v", a)
	}
}

// TestFailuresOfATaskAreBounded: a user who retries for ever a task that cannot be aborted gets final reports that the manager takes.
func TestFailuresOfATaskAreBounded(t *testing.T) {
	for failures, want := range map[int]int{0: 1, 2: 3, 3: 4, 500: 4} {
		task := supervise.Task{Name: "form", Phase: supervise.Failed, Begun: true, Continue: true, Failures: failures, Reason: protocol.ReasonAgentFailed, Message: "no"}
		o := protocol.Orders{Tasks: []protocol.Task{{Name: "form", Continue: true}}, MaxRetries: 3}
		s := supervise.State{Tasks: []supervise.Task{task}}.Apply(supervise.Ordered{Orders: o}, epoch)
		if a := supervise.Next(s, epoch); a.Kind != supervise.Finish || a.Final.TaskFailures != want {
			t.Errorf("after %d failures: %+v, want %d", failures, a.Final, want)
		}
	}
}

// TestDoneTasksAreDelivered although the orders do not list them any more, and each listed task was aborted.
func TestDoneTasksAreDelivered(t *testing.T) {
	listed := protocol.Orders{Tasks: []protocol.Task{{Name: "save", Continue: true}}, Delivery: protocol.Delivery{Push: true}}
	aborted := func(name string) bool { return name == "save" }
	for name, tc := range map[string]struct {
		events []supervise.Ordered
		want   string
	}{
		"nothing was done":                      {[]supervise.Ordered{{Orders: listed, Aborted: aborted}}, protocol.ReasonTasksAborted},
		"the journal has a done task":           {[]supervise.Ordered{{Orders: listed, Aborted: aborted, AnyDone: true}}, ""},
		"a task was done before it was removed": {[]supervise.Ordered{{Orders: protocol.Orders{Tasks: []protocol.Task{{Name: "form"}}}, Done: func(string) bool { return true }}, {Orders: listed, Aborted: aborted}}, ""},
	} {
		s := supervise.State{Delivery: supervise.Delivery{Head: "c1", Changed: true}}
		for _, e := range tc.events {
			s = s.Apply(e, epoch)
		}
		a := supervise.Next(s.Apply(supervise.Connected{}, epoch), epoch)
		if a.Final.Reason != tc.want || tc.want == "" && a.Kind != supervise.Review {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
