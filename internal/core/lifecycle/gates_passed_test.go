// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestGatesPassed: the condition exists for work with gates. A failure is told once, and that gates have not run is no news.
func TestGatesPassed(t *testing.T) {
	const pending = "Not every gate has passed yet, and the newest results have no failure."
	failing := &Run{GateFailures: []string{`gate "unit" of task "form": Failed (exit code 1)`}}
	unstarted := &Run{GateFailures: []string{`gate "unit" of task "form": Failed (exit code 1)`, `gate "lint" before the delivery: NotStarted (exit code 127)`}, GatesUnstarted: true}
	for name, tc := range map[string]struct {
		gated bool
		run   *Run
		want  Condition
	}{
		"without gates": {false, failing, Condition{}},
		"not yet":       {true, nil, Condition{ConditionGatesPassed, Unknown, ReasonGatesPending, pending}},
		"no failure":    {true, &Run{}, Condition{ConditionGatesPassed, Unknown, ReasonGatesPending, pending}},
		"a failure":     {true, failing, Condition{ConditionGatesPassed, False, protocol.ReasonGateFailed, `Gates have not passed: gate "unit" of task "form": Failed (exit code 1).`}},
		"one that cannot be started": {true, unstarted, Condition{ConditionGatesPassed, False, protocol.ReasonGateNotStarted,
			`Gates have not passed: gate "unit" of task "form": Failed (exit code 1); gate "lint" before the delivery: NotStarted (exit code 127).`}},
	} {
		d := Next(Observed{Spec: Spec{Name: "login", Suspend: true, Gated: tc.gated}, Run: tc.run}, noon)
		if got := d.Memory.Condition(ConditionGatesPassed); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		warned := slices.ContainsFunc(d.Events, func(e Event) bool {
			return e.Warning && e.Reason == tc.want.Reason && e.Message == tc.want.Message
		})
		if warned != (tc.want.Status == False) {
			t.Errorf("%s: events %+v", name, d.Events)
		}
		if slices.ContainsFunc(d.Events, func(e Event) bool { return e.Reason == ReasonGatesPending }) {
			t.Errorf("%s: %+v", name, d.Events)
		}
	}
	for at, want := range map[summary]Condition{
		{phase: ReadyToMerge, reason: protocol.ReasonApprovalRequired}: {ConditionGatesPassed, True, ReasonGatesPassed, "Every gate has passed on the work."},
		{phase: Delivered, reason: protocol.ReasonDelivered}:           {ConditionGatesPassed, True, ReasonGatesPassed, "Every gate has passed on the work."},
		{phase: Blocked, reason: protocol.ReasonGateFailed, message: "Task form is not proved."}: {ConditionGatesPassed, False, protocol.ReasonGateFailed,
			"Task form is not proved."},
		{phase: Failed, reason: protocol.ReasonAgentFailed}: {ConditionGatesPassed, Unknown, ReasonGatesPending, pending},
	} {
		s := situation{o: Observed{Spec: Spec{Gated: true}}}
		if got := s.gatesPassed(at); len(got) != 1 || got[0] != want {
			t.Errorf("%+v: %+v", at, got)
		}
	}
}

// TestGatesOfAbortedTasks: nobody who approves the rest is told that their gates have passed.
func TestGatesOfAbortedTasks(t *testing.T) {
	f := &Final{Epoch: 1, Outcome: protocol.OutcomeReadyToMerge, Message: `the work is done; ` + protocol.TasksNotDone + `"extras/audit"`}
	s := situation{o: Observed{Spec: Spec{Gated: true}, Run: &Run{Epoch: 1, Final: f}}, m: Memory{Attempt: 1}}
	want := Condition{ConditionGatesPassed, True, ReasonGatesPassed,
		"Every gate of the tasks that are done has passed, and so has every gate before the delivery. Gates of aborted tasks may not have passed on the work."}
	for _, phase := range []Phase{ReadyToMerge, Delivered} {
		if got := s.gatesPassed(summary{phase: phase}); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v", phase, got)
		}
	}
}

// TestGatesAreLookedAt: while the watchdog looks which gates must run, nobody is told that all of them have passed. Work that was pushed has passed them.
func TestGatesAreLookedAt(t *testing.T) {
	was := func(status Status) Memory {
		return Memory{Attempt: 1, Job: &JobMemory{Run: RunSeal}, Conditions: []Condition{{Type: ConditionGatesPassed, Status: status}}}
	}
	looks, pushed := summary{phase: ReadyToMerge, reason: ReasonDelivering}, summary{phase: Blocked, reason: protocol.ReasonPushConflict}
	for name, tc := range map[string]struct {
		at   summary
		was  Memory
		want Status
	}{
		"gates have changed":          {looks, was(Unknown), Unknown},
		"the proved work is approved": {looks, was(True), True},
		"the server refuses the work": {pushed, was(Unknown), True},
	} {
		s := situation{o: Observed{Spec: Spec{Gated: true, Gates: []Gate{{Sum: "unit"}}}, Memory: tc.was}, m: tc.was}
		if got := s.gatesPassed(tc.at); len(got) != 1 || got[0].Status != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
