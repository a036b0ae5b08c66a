// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Failure is something that the watchdog has told an agent to correct: work that was not valid, a gate that failed, or an anomaly.
type Failure struct {
	Task string
	// Anomaly is the kind of the anomaly; empty for other failures.
	Anomaly string `json:",omitempty"`
	// Checkpoint is the newest one at that time; 0 if there was none.
	Checkpoint int64
	// Told is what was wrong, as the agent has read it. Of gates it is short.
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

// objection is why a task is corrected. An agent reads much more about gates that have failed: what they are, their commands, and their whole outputs.
func (s *State) objection(task, told string) string {
	if s.Tasks[task].Gating == "" {
		return told
	}
	return cmp.Or(gates.Failing(s.Results), told)
}

func (f Failure) same(o Failure) bool {
	return f.Task == o.Task && f.Anomaly == o.Anomaly && (f.Anomaly != "" || f.Checkpoint == o.Checkpoint)
}
