// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package failures

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Recent is how long after its last failed call an agent may end for the call to be the cause. Clients give up within seconds of their last
// try; what works on for longer has got over it.
const Recent = 2 * time.Minute

// mostCalls bounds the count of calls, so that it has a bounded text.
const mostCalls = 1 << 20

// Streak is the failed calls since the last good answer. The zero value has none.
type Streak struct {
	// Failure that the streak comes to; nil for an empty streak.
	Failure *protocol.Failure `json:"failure,omitempty"`
	// At is when the last of its calls failed.
	At time.Time `json:"at,omitzero"`
}

// Hear what came of a call. Calls that a budget holds say nothing: they are neither answered nor failed.
func (s Streak) Hear(a Answer, now time.Time) Streak {
	if a.Good() {
		return Streak{}
	}
	row := Of(a)
	if row.Class == protocol.FailureBudget {
		return s
	}
	next := protocol.Failure{Class: row.Class, Cause: a.name(), Status: a.Status, Calls: 1}
	if s.Failure != nil {
		next.Calls = min(s.Failure.Calls+1, mostCalls)
		if s.Failure.Class == protocol.FailureAgent { // one such call is enough: an agent cannot hide it behind others
			next.Class, next.Cause, next.Status = s.Failure.Class, s.Failure.Cause, s.Failure.Status
		}
	}
	return Streak{Failure: &next, At: now}
}

// Ended is the failure because of which an agent ended at a time; nil if the agent itself is the cause.
func (s Streak) Ended(now time.Time) *protocol.Failure {
	if !Excuses(s.Failure) || now.Sub(s.At) > Recent {
		return nil
	}
	return s.Failure
}

// Excuses reports whether a failure is not the agent's, so that its attempt does not count as a retry.
func Excuses(f *protocol.Failure) bool {
	if f == nil {
		return false
	}
	switch f.Class {
	case protocol.FailureProvider, protocol.FailureInfrastructure, protocol.FailurePolicy:
		return true
	default:
		return false
	}
}

// Say what happened and what a user can do about it.
func Say(f protocol.Failure) string {
	row := Of(answerOf(f))
	return fmt.Sprintf("its last %s failed (%s, %s). %s %s", calls(f.Calls), cmp.Or(f.Cause, "unknown"), f.Class, row.Meaning, row.Fix)
}

// answerOf is the answer that a failure was heard with.
func answerOf(f protocol.Failure) Answer {
	a := Answer{Status: f.Status, Reason: f.Cause}
	if f.Cause == (Answer{Status: f.Status}).name() {
		a.Reason = ""
	}
	return a
}

func calls(n int) string {
	if n == 1 {
		return "model call"
	}
	return fmt.Sprintf("%d model calls", n)
}
