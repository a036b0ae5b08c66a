// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// changes tells what differs between two states of the status. Being derived from what is written, an event cannot be
// sent for something that did not happen, nor twice. fate is why
// a lost attempt's pod ended, which is not kept. During an outage, no Feature tells that no model answers it.
func changes(before, after Memory, fate string, outage bool) []Event {
	var events []Event
	tell := func(warning bool, reason, message string) {
		same := func(e Event) bool { return e.Reason == reason }
		if !slices.ContainsFunc(events, same) {
			events = append(events, Event{Warning: warning, Reason: reason, Message: message})
		}
	}
	if after.Lost > before.Lost {
		message := fmt.Sprintf("Attempt %d ended without a final report.", lostAttempt(before, after))
		tell(true, ReasonPodLost, strings.TrimSpace(message+" "+bounded(fate)))
	}
	names := []string{ConditionAccepted, ConditionWorkspaceReady, ConditionAgentRunning, ConditionSupervised, ConditionIsolated, ConditionLocksHeld, ConditionAreasDisjoint, ConditionDeliveriesDisjoint, ConditionPlanned, ConditionGatesPassed, ConditionReviewersHeeded, ConditionSupervisorCostInBounds, ConditionKnowledgeNeedsReview, ConditionCheckpointsValid}
	for _, name := range slices.Concat(names, anomalies, []string{ConditionSucceeded}) {
		was, is := before.Condition(name), after.Condition(name)
		if is.Reason == was.Reason && is.Status == was.Status || !worthTelling(before, after, is) || is.Reason == ReasonNoAnomaly && was.Status != True || name == ConditionAgentStalled && unserved(was, is, outage) {
			continue
		}
		tell(troubling(name, is, after.Phase), is.Reason, is.Message)
	}
	return events
}

// unserved says that an agent is not answered, which one Event reports for all of them, or that it is answered again, which is not news
// about the agent.
func unserved(was, is Condition, outage bool) bool {
	return is.Reason == protocol.ReasonProviderUnavailable && outage || is.Reason == ReasonNoAnomaly && was.Reason == protocol.ReasonProviderUnavailable
}

// worthTelling leaves out what says nothing new: that something is not known or over, and what another Event reported when it happened.
func worthTelling(before, after Memory, c Condition) bool {
	switch c.Reason {
	case "": // the Feature has the condition no more
		return false
	case ReasonNotYetReported, ReasonNotRunning, ReasonIsolated, ReasonNoLocks, ReasonNoOverlap, ReasonNotCompared, ReasonGatesPending, ReasonDirectivesAddressed, ReasonSupervisorCostLow:
		return false
	case ReasonPreparing, protocol.ReasonPlanApprovalRequired: // a plan waits when the pod has ended
		return c.Type == ConditionSucceeded
	case ReasonPodLost:
		return after.Lost > before.Lost
	case ReasonRetrying:
		return after.Failures > before.Failures || after.TaskFailures > before.TaskFailures || ended(before, after)
	default:
		return true
	}
}

// ended reports whether the end of the current attempt was noted.
func ended(before, after Memory) bool {
	return before.Job != nil && before.Job.EndedAt.IsZero() && after.Job != nil && after.Job.Name == before.Job.Name && !after.Job.EndedAt.IsZero()
}

// lostAttempt is the attempt whose loss was noted: the current one, or the one before a newer one that was adopted.
func lostAttempt(before, after Memory) int64 {
	if before.Attempt > 0 {
		return before.Attempt
	}
	return after.Attempt
}

// anomalies are the conditions of an agent that is stuck or in trouble, in the sequence of their Events.
var anomalies = []string{ConditionAgentStalled, ConditionAgentLooping, ConditionContextPressure, ConditionCascadeFailure, ConditionPaceEscalated}

func troubling(name string, c Condition, phase Phase) bool {
	if slices.Contains(anomalies, name) {
		return c.Status == True
	}
	switch name {
	case ConditionSucceeded:
		return phase == Blocked || phase == Failed || c.Reason == ReasonPodLost || c.Reason == ReasonRetrying || c.Reason == protocol.ReasonProviderUnavailable
	case ConditionSupervised:
		return c.Reason == ReasonHeartbeatMissing || c.Reason == ReasonSupervisionDegraded
	case ConditionAgentRunning:
		return c.Reason == ReasonPodStuckTerminating
	case ConditionLocksHeld, ConditionAreasDisjoint:
		return c.Status == False && c.Reason != ReasonWaitingForLock && c.Reason != ReasonWaitingForArea
	default:
		return c.Status == False
	}
}
