// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Steered is how the agent was steered so far.
type Steered struct {
	// Sequence of the newest step.
	Sequence int64
	// Bytes that were taken out of the conversation, as far as they are in records.
	Bytes int64
}

func (s *State) steer(x protocol.Steering) error {
	if x.Sequence <= s.Steered.Sequence {
		return fmt.Errorf("step %d of steering after step %d", x.Sequence, s.Steered.Sequence)
	}
	s.Steered = Steered{Sequence: x.Sequence, Bytes: s.Steered.Bytes + int64(len(x.Before)+len(x.After))}
	return nil
}
