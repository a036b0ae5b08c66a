// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"encoding/json"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// Bounds of the wait for an agent that was asked to pause; the policy's pauseTimeout shortens them.
const (
	// askWithin is a while in which no agent is in the middle of something that matters.
	askWithin = 10 * time.Second
	// askAtTheEnd leaves a pod that ends the better part of its grace period.
	askAtTheEnd = 2 * time.Second
)

// pauseRequest and pauseOver are the lines on an agent's standard input around a freeze.
type pauseRequest struct {
	Type         string `json:"type"`
	CheckpointID string `json:"checkpoint_id"`
	Reason       string `json:"reason"`
	TimeoutMS    int64  `json:"timeout_ms"`
}

type pauseOver struct {
	Type         string `json:"type"`
	CheckpointID string `json:"checkpoint_id"`
}

// ask is how the agent is asked to pause before the checkpoint that comes next; nil where its runtime knows of no such
// thing.
func (r *run) ask(o occasion) *contract.RunnerAsk {
	record, known := runtimes.Find(o.orders.Agent.Runtime)
	if !known || record.Pause != runtimes.PauseMessage {
		return nil
	}
	within := askWithin
	if o.hold {
		within = askAtTheEnd
	}
	within = min(within, o.policy.Execution.PauseTimeout)
	id := naming.Checkpoint(o.orders.Feature.Name, max(r.journal().Sequence+1, o.orders.NextCheckpoint))
	line, err1 := json.Marshal(pauseRequest{Type: "pause_request", CheckpointID: id, Reason: "checkpoint_validation", TimeoutMS: within.Milliseconds()})
	resume, err2 := json.Marshal(pauseOver{Type: "resume", CheckpointID: id})
	if err1 != nil || err2 != nil {
		return nil // strings and a number: it cannot happen
	}
	return &contract.RunnerAsk{Line: string(line), Resume: string(resume), ID: id, Timeout: within}
}
