// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// afterParked wants an agent when its question has an answer, when it has to continue with its best guess, or when its task was removed. Until then
// the Feature takes no capacity and no running time, and keeps its locks and the area of its work.
func (s situation) afterParked() nextRun {
	r := s.o.Run
	start := nextRun{granted: s.retryNow(), at: summary{phase: Preparing, reason: ReasonPreparing}}
	switch {
	case slices.Contains(s.o.Spec.Answered, r.QuestionID):
		start.at.message = fmt.Sprintf("Question %s has its answer: attempt %d is about to start in the agent's session.", r.QuestionID, s.m.Attempt+1)
		return s.agentUnlessOver(start)
	case r.QuestionID == "" || s.o.Spec.Questions.Guess(r.AskedAt, s.now):
		start.at.message = fmt.Sprintf("Nobody has answered question %s: attempt %d is about to start, and the agent continues with its best guess.", r.QuestionID, s.m.Attempt+1)
		return s.agentUnlessOver(start)
	case r.Unlisted:
		start.at.message = fmt.Sprintf("Task %q, whose agent asked question %s, is not part of the plan any more: attempt %d is about to start with the next task.", r.Task, r.QuestionID, s.m.Attempt+1)
		return s.agentUnlessOver(start)
	case s.o.Spec.suspended():
		return nextRun{at: suspendedSummary(s.o.Spec)}
	}
	n := nextRun{at: summary{phase: AwaitingInput, reason: protocol.ReasonAwaitingInput,
		message: r.asks() + " The agent's pod has ended, and the answer starts the next attempt in its session."}}
	if q := s.o.Spec.Questions; q.Timeout > 0 && !r.AskedAt.IsZero() {
		n.again = r.AskedAt.Add(q.Timeout)
	}
	return n
}
