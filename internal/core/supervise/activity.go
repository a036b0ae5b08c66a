// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// activity is the run in one word. That it cannot continue before a user has acted counts for more than what the agent does.
func (s State) activity() string {
	switch {
	case s.Final != nil:
		return ended(*s.Final)
	case s.Left:
		return protocol.StateComplete
	case s.Checkpoints.Breaker, s.overBudget():
		return protocol.StateFrozen
	case s.End != GoOn || s.Current() < 0:
		return protocol.StateFinishing
	case s.Question != nil && !s.Question.Guess, s.steered() && s.Measure.Rung == policy.RungHold && s.Measure.Until.IsZero():
		return protocol.StateWaiting
	case s.steered():
		return protocol.StateEscalating
	case !s.Agent.Running:
		return protocol.StateIdle
	case s.offPlan():
		return protocol.StateEscalating
	case s.Told:
		return protocol.StateRecovering
	case s.Conversation != nil && s.Conversation.Awaits != "":
		return protocol.StateWaiting
	}
	return protocol.StateActive
}

// steered says that a measure is under way.
func (s State) steered() bool { return s.Measure != nil && !s.Measure.Over }

// offPlan says that the work needs another method, or has to stop.
func (s State) offPlan() bool {
	return s.Conversation != nil && (s.Conversation.Pace == protocol.PaceContingent || s.Conversation.Pace == protocol.PaceEmergency)
}

// ended is the state of an attempt with its final report.
func ended(f protocol.FinalReport) string {
	switch {
	case f.Outcome == protocol.OutcomeReadyToMerge, f.Outcome == protocol.OutcomeParked, f.Outcome == protocol.OutcomePlanProposed:
		return protocol.StateWaiting
	case f.Outcome == protocol.OutcomeSuspended, f.Outcome == protocol.OutcomeStopped, f.Reason == protocol.ReasonAnomalyPersists:
		return protocol.StateAborted
	}
	return protocol.StateComplete
}
