// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"log/slog"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Recorder records the steps of steering an agent in trouble.
type Recorder interface {
	// Recorded returns the recorded steps.
	Recorded() journal.Steered
	// Steered writes one step down. It is durable when Steered returns.
	Steered(x protocol.SteeringStep) error
}

// maxUnwritten steps wait for a journal that cannot be written.
const maxUnwritten = 64

// unwritten are the steps that could not be written down yet, the oldest first.
type unwritten struct {
	recorder Recorder
	log      *slog.Logger
	list     []protocol.SteeringStep
	// newest is the number of the newest step, whether it is written down or not.
	newest int64
}

// recorded is what is written down, and what will be.
func (u *unwritten) recorded() journal.Steered {
	r := u.recorder.Recorded()
	r.Sequence = max(r.Sequence, u.newest)
	return r
}

// write steps down, after the waiting ones.
func (u *unwritten) write(steps []protocol.SteeringStep) {
	if len(steps) > 0 {
		u.newest = steps[len(steps)-1].Sequence
	}
	for u.list = append(u.list, steps...); len(u.list) > 0; u.list = u.list[1:] {
		if u.list[0].Sequence <= u.recorder.Recorded().Sequence { // it was, though it was not said so
			continue
		}
		if err := u.recorder.Steered(u.list[0]); err != nil {
			u.log.Warn("Cannot write down a step of steering yet", "step", u.list[0].Sequence, "error", err.Error())
			if more := len(u.list) - maxUnwritten; more > 0 {
				u.log.Error("Lost steps of steering: cannot write the journal", "steps", more)
				u.list = u.list[more:]
			}
			return
		}
	}
}
