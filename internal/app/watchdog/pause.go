// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// Bounds of the wait for an agent with a requested pause; the policy's pauseTimeout shortens them.
const (
	// askWithin is a while in which no agent is in the middle of something that matters.
	askWithin = 10 * time.Second
	// askAtTheEnd leaves a pod that ends the better part of its grace period.
	askAtTheEnd = 2 * time.Second
)

// askToPause is how the runner asks an agent to pause before the checkpoint that comes after one with a number; nil where its
// runtime knows of no such thing.
func askToPause(adapter runtimes.Adapter, last int64, o checkpoint.Occasion) *protocol.RunnerAsk {
	if adapter == nil {
		return nil
	}
	within := askWithin
	if o.Hold {
		within = askAtTheEnd
	}
	within = min(within, o.Terms.Policy.Execution.PauseTimeout)
	id := naming.Checkpoint(o.Orders.Feature.Name, max(last+1, o.Orders.NextCheckpoint))
	ask, resume := adapter.Pause(id, within)
	if ask == nil {
		return nil
	}
	line, err1 := notice.Line(ask)
	after, err2 := notice.Line(resume)
	if err1 != nil || err2 != nil {
		return nil // strings and a number: it cannot happen
	}
	return &protocol.RunnerAsk{Line: line, Resume: after, ID: id, Timeout: within}
}
