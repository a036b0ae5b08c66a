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

func TestActivity(t *testing.T) {
	looping := func(pace string) *protocol.Conversation {
		return &protocol.Conversation{Pace: pace, Anomalies: []protocol.Anomaly{{Type: "AgentLooping"}}}
	}
	measure := func(rung policy.Rung, until time.Time) *supervise.Measure {
		return &supervise.Measure{ID: "m", Rung: rung, Until: until}
	}
	final := func(outcome, reason string) *protocol.FinalReport {
		return &protocol.FinalReport{Outcome: outcome, Reason: reason}
	}
	for name, tc := range map[string]struct {
		change func(s *supervise.State)
		want   string
	}{
		"at work":                           {func(*supervise.State) {}, protocol.StateActive},
		"between two tasks":                 {func(s *supervise.State) { s.Agent.Running = false }, protocol.StateIdle},
		"an anomaly that it is not told of": {func(s *supervise.State) { s.Conversation = looping(protocol.PacePrimary) }, protocol.StateActive},
		"told":                              {func(s *supervise.State) { s.Conversation, s.Told = looping(protocol.PaceAlternate), true }, protocol.StateRecovering},
		"a background command": {func(s *supervise.State) {
			s.Conversation = &protocol.Conversation{Awaits: `the background command "make"`}
		}, protocol.StateWaiting},
		"a background command of one that was told": {func(s *supervise.State) {
			s.Conversation, s.Told = looping(""), true
			s.Conversation.Awaits = `the background command "make"`
		}, protocol.StateRecovering},
		"told, and ended since": {func(s *supervise.State) { s.Conversation, s.Told, s.Agent.Running = looping(""), true, false }, protocol.StateIdle},
		"off its plan":          {func(s *supervise.State) { s.Conversation = looping(protocol.PaceContingent) }, protocol.StateEscalating},
		"far off its plan, and told": {func(s *supervise.State) {
			s.Conversation, s.Told = looping(protocol.PaceEmergency), true
		}, protocol.StateEscalating},
		"a question": {func(s *supervise.State) { s.Question = &protocol.Question{ID: "q", Text: "Which?"} }, protocol.StateWaiting},
		"a question of one that is far off its plan": {func(s *supervise.State) {
			s.Conversation, s.Question = looping(protocol.PaceEmergency), &protocol.Question{ID: "q", Text: "Which?"}
		}, protocol.StateWaiting},
		"held for a person": {func(s *supervise.State) { s.Measure = measure(policy.RungHold, time.Time{}) }, protocol.StateWaiting},
		"held for a person, and the runner is not there yet": {func(s *supervise.State) {
			s.Measure, s.Agent = measure(policy.RungHold, time.Time{}), supervise.Agent{}
		}, protocol.StateWaiting},
		"held for a while":   {func(s *supervise.State) { s.Measure = measure(policy.RungHold, epoch.Add(time.Minute)) }, protocol.StateEscalating},
		"to go back":         {func(s *supervise.State) { s.Measure = measure(policy.RungRollback, time.Time{}) }, protocol.StateEscalating},
		"to be started anew": {func(s *supervise.State) { s.Measure, s.Agent.Running = measure(policy.RungRestart, time.Time{}), false }, protocol.StateEscalating},
		"to be given up":     {func(s *supervise.State) { s.Measure = measure(policy.RungBlock, time.Time{}) }, protocol.StateEscalating},
		"gone back, and told of that": {func(s *supervise.State) {
			s.Measure = measure(policy.RungRollback, time.Time{})
			s.Measure.Over, s.Told = true, true
		}, protocol.StateRecovering},
		"held, and checkpoints fail": {func(s *supervise.State) {
			s.Measure, s.Checkpoints.Breaker = measure(policy.RungHold, time.Time{}), true
		}, protocol.StateFrozen},
		"a budget that is used up":   {func(s *supervise.State) { s.Allowance.Exceeded = "no money" }, protocol.StateFrozen},
		"to be suspended while held": {func(s *supervise.State) { s.Measure, s.End = measure(policy.RungHold, time.Time{}), supervise.Suspend }, protocol.StateFinishing},
		"all done":                   {func(s *supervise.State) { s.Tasks[0].Phase, s.Agent.Running = supervise.Done, false }, protocol.StateFinishing},
		"delivered":                  {func(s *supervise.State) { s.Final = final(protocol.OutcomeDelivered, protocol.ReasonDelivered) }, protocol.StateComplete},
		"failed":                     {func(s *supervise.State) { s.Final = final(protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed) }, protocol.StateComplete},
		"invalid":                    {func(s *supervise.State) { s.Final = final(protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid) }, protocol.StateComplete},
		"to be approved": {func(s *supervise.State) {
			s.Final = final(protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
		}, protocol.StateWaiting},
		"given up":  {func(s *supervise.State) { s.Final = final(protocol.OutcomeBlocked, protocol.ReasonAnomalyPersists) }, protocol.StateAborted},
		"suspended": {func(s *supervise.State) { s.Final = final(protocol.OutcomeSuspended, protocol.ReasonSuspended) }, protocol.StateAborted},
		"stopped":   {func(s *supervise.State) { s.Final = final(protocol.OutcomeStopped, protocol.ReasonDeleted) }, protocol.StateAborted},
		"left":      {func(s *supervise.State) { s.Left = true }, protocol.StateComplete},
	} {
		s := supervise.State{Tasks: []supervise.Task{{Name: "form", Phase: supervise.Running}}, Agent: supervise.Agent{Connected: true, Running: true}}
		tc.change(&s)
		if got := s.Status("").State; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
