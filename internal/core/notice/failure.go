// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Failure reports that a checkpoint failed: until one succeeds, the watchdog promotes nothing of the agent's work.
type Failure struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	// Reason is one of the reasons of conditions. Message says what went wrong and where.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// FailuresInARow counts this one. At FailuresAllowed the agent is frozen.
	FailuresInARow  int    `json:"failures_in_a_row"`
	FailuresAllowed int    `json:"failures_allowed"`
	ActionTaken     string `json:"action_taken"`
	Suggestion      string `json:"suggestion"`
}

// Failed reports a failed checkpoint; inARow is the number of consecutive failures including this one, and allowed the limit of them.
func Failed(f protocol.Fault, inARow, allowed int, at time.Time) Failure {
	n := Failure{
		Type: "checkpoint_failed", Timestamp: at.UTC(), Reason: f.Reason, Message: f.Message,
		FailuresInARow: inARow, FailuresAllowed: allowed, ActionTaken: none,
	}
	if inARow >= allowed {
		n.ActionTaken = frozen
		n.Suggestion = "nothing: a user removes the cause and lets you continue"
	} else {
		n.Suggestion = fmt.Sprintf("stop what the message names: end processes that write all the time, free space on the volume. "+
			"The watchdog tries the checkpoint again after a pause, and after %d failures in a row it freezes you until a user decides", allowed)
	}
	return n
}
