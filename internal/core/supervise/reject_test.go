// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"reflect"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestARejectedAnswerFailsTheTask: the agent is killed, its work is captured, and nothing makes the task count as done: neither exit
// code 0 nor valid work nor an audit, and it is not corrected either.
func TestARejectedAnswerFailsTheTask(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, code := range []int{0, 1, 137} {
		s := State{Mode: policy.ModeInteractive, Sessions: true, Rules: Rules{Interval: time.Minute, MaxFailures: 3, MaxCorrections: 2}, Tasks: []Task{{Name: "form", Phase: Pending}, {Name: "next", Phase: Pending}}}
		s = s.Apply(Connected{}, now).Begin(Action{Kind: Start}).Apply(Started{Rules: s.Rules}, now)
		if a := Next(s, now); a.Kind == Kill {
			t.Fatalf("before: %+v", a)
		}
		s = s.Apply(AnswerRejected{Message: "no summary"}, now)
		if a := Next(s, now); a.Kind != Kill {
			t.Fatalf("rejected: %+v", a)
		}
		s = s.Apply(AgentExited{Code: code}, now).Begin(Action{Kind: Kill}).Apply(Killed{}, now)
		a := Next(s, now)
		if a.Kind != Checkpoint || !a.Closes {
			t.Fatalf("killed: %+v", a)
		}
		if Completes(s.Ending(s.Tasks[0]), protocol.Valid, policy.Audit) {
			t.Errorf("code %d: the task counts as done", code)
		}
		s = s.Begin(a).Apply(Taken{Action: a, Settled: true, TreeVerdict: protocol.Valid, Head: "c", Changed: true}, now)
		a = Next(s, now)
		want := protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonAnswerRejected, Message: "no summary", Head: "c"}
		if a.Kind != Finish || !reflect.DeepEqual(a.Final, want) {
			t.Errorf("code %d: %+v, want %+v", code, a, want)
		}
	}
	// It is heard after the end of an agent that is to go on after a turn without tools.
	goes := State{Tasks: []Task{{Name: "form", Phase: Pending, Continues: "steering/3"}}}
	if goes = goes.Apply(AnswerRejected{Message: "late"}, now); goes.Tasks[0].Rejected != "late" {
		t.Errorf("%+v", goes.Tasks)
	}
	// Of a task that is over, or not begun, nothing is rejected.
	s := State{Tasks: []Task{{Name: "form", Phase: Done}, {Name: "next", Phase: Pending}}}
	if s = s.Apply(AnswerRejected{Message: "late"}, now); s.Tasks[0].Rejected+s.Tasks[1].Rejected != "" {
		t.Errorf("%+v", s.Tasks)
	}
}
