// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// clocks is how far the clocks of two nodes may be apart. The manager starts an attempt when the time of a question is over by its own clock.
const clocks = 5 * time.Minute

// parking ends the attempt of an agent that waits for an answer, or does not begin one for it. An agent that works although its question has no
// answer keeps its pod.
func parking(s State, now time.Time) (Action, bool) {
	i := s.Current()
	if s.Seal || i < 0 || !s.MayPark || !s.Sessions {
		return Action{}, false
	}
	if q := s.Tasks[i].Parked; q != nil && s.Tasks[i].Phase == Pending && s.Tasks[i].Restart == "" && !s.Agent.Leftovers {
		return Action{Kind: Finish, Final: s.parked(*q)}, true
	}
	at := s.parksAt()
	if at.IsZero() || now.Before(at) || !s.Agent.Running || s.Tasks[i].Phase != Running {
		return Action{}, false
	}
	return Action{Kind: Park, Task: s.Tasks[i].Name, Question: *s.Question}, true
}

// parksAt is when the pod of an agent that waits for an answer ends; zero if it does not.
func (s State) parksAt() time.Time {
	q := s.Question
	if q == nil || q.Guess || q.At.IsZero() || s.Rules.ParkAfter <= 0 || !s.MayPark || !s.Sessions || !s.Asking {
		return time.Time{}
	}
	return q.At.Add(s.Rules.ParkAfter)
}

// awaits forgets a question that an earlier attempt has ended for when it has an answer, or when the agent has to continue without one.
func (t *Task) awaits(o protocol.Orders, now time.Time) {
	q := t.Parked
	if q == nil {
		return
	}
	answered := slices.ContainsFunc(o.Answers, func(a protocol.Answer) bool { return a.Question == q.ID })
	if answered || o.Policy.Questions.Guess(q.At, now.Add(clocks)) {
		t.Parked = nil
	}
}

// ParkedNow: the journal has that the attempt ends because a question waits.
type ParkedNow struct{}

func (ParkedNow) apply(s *State, _ time.Time) { s.idle() }

// parked is the final report of an attempt that ends because a question waits.
func (s State) parked(q protocol.Question) protocol.FinalReport {
	return protocol.FinalReport{Outcome: protocol.OutcomeParked, Reason: protocol.ReasonAwaitingInput, Head: s.Delivery.Head, Question: &q,
		Message: fmt.Sprintf("the agent waits for the answer to question %s, and the watchdog keeps the work", q.ID)}
}
