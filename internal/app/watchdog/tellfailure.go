// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// failureNotice is the line on an agent's standard input that tells that a checkpoint failed: until one works again,
// nothing that the agent does is promoted.
type failureNotice struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	// Reason is a word of the conditions, Message says what went wrong and where.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// FailuresInARow counts this one. At FailuresAllowed the agent is frozen.
	FailuresInARow  int    `json:"failures_in_a_row"`
	FailuresAllowed int    `json:"failures_allowed"`
	ActionTaken     string `json:"action_taken"`
	Suggestion      string `json:"suggestion"`
}

// streak is how many checkpoints in a row had failed before the one that is taken, and how many may.
type streak struct{ failed, allowed int }

func (r *run) streak() streak {
	return streak{failed: r.state.Checkpoints.Failures, allowed: r.state.Rules.MaxFailures}
}

// tellFailure tells the agent that a checkpoint failed, and why.
func (r *run) tellFailure(ctx context.Context, s streak, f contract.Fault) {
	n := failureNotice{
		Type: "checkpoint_failed", Timestamp: r.Now().UTC(), Reason: f.Reason, Message: f.Message,
		FailuresInARow: s.failed + 1, FailuresAllowed: s.allowed, ActionTaken: "none",
	}
	if n.FailuresInARow >= n.FailuresAllowed {
		n.ActionTaken = "frozen"
		n.Suggestion = "nothing: a person removes the cause and lets you go on"
	} else {
		n.Suggestion = fmt.Sprintf("stop what the message names: end processes that write all the time, free space on the volume; "+
			"the checkpoint is tried again after a pause, and after %d failures in a row you are frozen until a person decides", s.allowed)
	}
	r.input(ctx, r.journal().Sequence, n)
}
