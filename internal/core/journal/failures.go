// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Failure is something that the watchdog has told an agent to correct: work that was not valid, a gate that failed, or an anomaly.
type Failure struct {
	Task string
	// Anomaly is the kind of the anomaly; empty for other failures.
	Anomaly string `json:",omitempty"`
	// Checkpoint is the newest one at that time; 0 if there was none.
	Checkpoint int64
	// Told is what the agent has read.
	Told string
}

const (
	// maxFailures are kept, the newest: reviewers see no more.
	maxFailures = 16
	// maxTold bounds what is kept of each one, in bytes: five times what a reviewer sees of it.
	maxTold = 2000
)

// fails adds a failure. The correction of work that a checkpoint has taken back says all that the checkpoint said, and a step of steering all that the
// step before it said.
func (s *State) fails(f Failure) {
	if f.Told == "" {
		return
	}
	f.Checkpoint, f.Told = s.Chain.Sequence, plain.CutBytes(f.Told, maxTold)
	kept := s.Failures
	if n := len(kept); n > 0 && kept[n-1].same(f) {
		kept = kept[:n-1]
	}
	kept = append(slices.Clip(kept), f)
	s.Failures = kept[max(0, len(kept)-maxFailures):]
}

func (f Failure) same(o Failure) bool {
	return f.Task == o.Task && f.Anomaly == o.Anomaly && (f.Anomaly != "" || f.Checkpoint == o.Checkpoint)
}

// steered is the failure behind a step of steering. The end of an anomaly is none.
func (s *State) steered(x protocol.SteeringStep) {
	if !x.Over {
		s.fails(Failure{Task: x.Task, Anomaly: x.Anomaly, Told: fmt.Sprintf("%s: %s %s", x.Anomaly, x.Evidence, x.Message)})
	}
}
