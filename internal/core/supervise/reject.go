// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// AnswerRejected: the gateway rejects the model's answer, and the task cannot be done. The watchdog ends the agent and captures what it has written.
type AnswerRejected struct {
	// Message says why.
	Message string
}

func (e AnswerRejected) apply(s *State, _ time.Time) {
	if i := s.Current(); i >= 0 && (s.Tasks[i].Phase == Running || s.Tasks[i].Phase == Exited || s.Tasks[i].Continues != "" || s.Doing == Start) {
		s.Tasks[i].Rejected, s.Tasks[i].RejectedReason = e.Message, protocol.ReasonAnswerRejected
	}
}
