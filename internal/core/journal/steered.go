// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Steered is how the agent was steered so far.
type Steered struct {
	// Sequence of the newest step.
	Sequence int64
	// Bytes that were taken out of the conversation, as far as they are in records.
	Bytes int64
	// Steps are the newest of the newest attempt, the oldest first, without what they took out.
	Steps []protocol.SteeringStep `json:",omitempty"`
}

// maxSteered steps are what a session resumes with. What was done with the whole run is forgotten last.
const maxSteered = 64

// halts says whether a step was done with the whole run.
func halts(x protocol.SteeringStep) bool {
	return slices.Index(policy.Ladder(), policy.Rung(x.Rung)) >= slices.Index(policy.Ladder(), policy.RungNoTools)
}

func (s *State) steer(x protocol.SteeringStep) error {
	if x.Sequence <= s.Steered.Sequence {
		return fmt.Errorf("step %d of steering after step %d", x.Sequence, s.Steered.Sequence)
	}
	steps := s.Steered.Steps
	if len(steps) > 0 && steps[0].Attempt != x.Attempt {
		steps = nil
	}
	bytes := s.Steered.Bytes + int64(len(x.Before)+len(x.After))
	x.Before, x.After = "", ""
	if steps = append(slices.Clip(steps), x); len(steps) > maxSteered {
		i := max(0, slices.IndexFunc(steps, func(x protocol.SteeringStep) bool { return x.Over || !halts(x) }))
		steps = slices.Delete(slices.Clone(steps), i, i+1)
	}
	s.Steered = Steered{Sequence: x.Sequence, Bytes: bytes, Steps: steps}
	if !x.Over {
		s.fails(Failure{Task: x.Task, Anomaly: x.Anomaly, Told: fmt.Sprintf("%s: %s %s", x.Anomaly, x.Evidence, x.Message)})
	}
	return nil
}
