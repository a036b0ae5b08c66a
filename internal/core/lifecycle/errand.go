// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// An errand is a seal run for requests that no agent will come to take: a rollback or a checkpoint of a Feature that is
// Blocked, Failed, Suspended or ReadyToMerge. Where the Feature stands does not change by it. status.job.errand tells of it.

// errandWaits reports whether such a request is open. Volumes that went with their pod leave nothing to run it on.
func (s situation) errandWaits() bool {
	return !s.o.Spec.Ephemeral && slices.ContainsFunc(s.o.Spec.Requests, func(r Request) bool {
		_, reported := s.reported(r.ID)
		return isErrand(r.Kind) && r.Refusal == "" && !reported && !s.answered(r.ID)
	})
}

func isErrand(k RequestKind) bool { return k == RequestRollback || k == RequestCheckpoint }

// suspendingSummary is where a Feature stands whose agent has orders to end.
func suspendingSummary(spec Spec) summary {
	at := summary{phase: Running, reason: ReasonSuspending, message: "The watchdog takes a last checkpoint, then the pod ends."}
	if spec.SuspendedBy != "" {
		at.message += fmt.Sprintf(" spec.suspend of a SupervisorPolicy that applies is true: %s.", spec.SuspendedBy)
	}
	return at
}

// suspendedSummary is where a Feature stands that works no more because it, or a policy, suspends it.
func suspendedSummary(spec Spec) summary {
	if spec.SuspendedBy != "" {
		return summary{phase: Suspended, reason: protocol.ReasonSuspendedByPolicy, message: fmt.Sprintf(
			"No agent works while spec.suspend of a SupervisorPolicy that applies is true: %s. Tidewaiter keeps the work. It continues by itself once the field is false.", spec.SuspendedBy)}
	}
	return summary{phase: Suspended, reason: protocol.ReasonSuspended, message: "Set spec.suspend to false to resume the work."}
}
