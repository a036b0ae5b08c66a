// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// firstUnserved is the pause after the first attempt in a row that models did not answer; each further one doubles it, up to
	// longestUnserved. Outages of providers last minutes to hours.
	firstUnserved, longestUnserved = 30 * time.Second, 10 * time.Minute
	// maxUnserved is how many such attempts in a row are followed by another one without a user: some eight hours, a night. It also bounds
	// what an agent gets that provokes errors.
	maxUnserved = 50
)

// Unserved describes consecutive attempts that ended because models did not answer.
type Unserved struct {
	Attempts int
	// Class and Cause of the last one, as in protocol.Failure.
	Class, Cause string
	// Policy and Backends are the hashes of the policy and of the backends in force at its end.
	Policy, Backends string
}

// settled counts an attempt that ended with a final report: towards the retries, unless models did not answer. An errand says once more what
// the attempt before it said.
func (m Memory) settled(s situation, f *Final) Memory {
	switch {
	case m.Job.Errand:
	case f.Outcome == protocol.OutcomeAgentFailed && failures.Excuses(f.Failure):
		u := Unserved{Attempts: 1, Class: f.Failure.Class, Cause: f.Failure.Cause, Policy: s.o.Policy.Hash, Backends: s.o.Backends}
		if m.Unserved != nil {
			u.Attempts += m.Unserved.Attempts
		}
		m.Unserved = &u
	case f.Outcome == protocol.OutcomeAgentFailed && f.TaskFailures > 0:
		m.Unserved = nil
		m = m.failedInTask(s, f)
	case f.Outcome == protocol.OutcomeAgentFailed:
		m.Failures, m.Unserved = m.Failures+1, nil
	case f.Outcome != protocol.OutcomeSuspended && f.Outcome != protocol.OutcomeStopped: // a user's wish says nothing of the models
		m.Unserved = nil
	}
	return m
}

// failedInTask counts a failure in a task that the watchdog aborts when the retries are spent. It spends no retry of the Feature, except where the task
// cannot be aborted, or the reports cannot be true.
func (m Memory) failedInTask(s situation, f *Final) Memory {
	edited := s.o.Memory.ObservedGeneration != s.o.Spec.Generation // the watchdog may have had more retries
	m.TaskFailures++
	switch {
	case m.TaskFailures > s.o.Spec.maxTaskFailures():
		m.Failures = max(m.Failures, m.TaskFailures)
	case f.TaskFailures > s.o.Spec.Retries && !edited:
		m.Failures = max(m.Failures, f.TaskFailures)
	}
	return m
}

// pause before the next attempt. What a user has changed since, where that was the cause, is tried at once.
func (u Unserved) pause(policy, backends string) time.Duration {
	changed := func(was, is string) bool { return was != "" && is != "" && is != was } // what is not known has not changed
	if u.Class == protocol.FailurePolicy && (changed(u.Policy, policy) || changed(u.Backends, backends)) {
		return 0
	}
	// Ten times doubled is above the longest pause, and no shift can overflow.
	return min(firstUnserved<<min(max(u.Attempts, 1)-1, 10), longestUnserved)
}

// afterUnserved waits until models may answer again, and spends no retry.
func (s situation) afterUnserved(f *Final) nextRun {
	if s.m.Unserved.Attempts > maxUnserved {
		return s.ifAsked(nextRun{run: RunAgent, at: summary{phase: Blocked, reason: protocol.ReasonProviderUnavailable, stalled: true, message: fmt.Sprintf(
			"Attempt %d: %s No model answered %d attempts in a row. Tidewaiter keeps the work: when models answer again, start the agent with %s.",
			s.m.Attempt, sentence(f.Message), s.m.Unserved.Attempts, s.retryHint())}})
	}
	n := nextRun{granted: !s.deadlineOver() && len(s.openRetries()) > 0}
	n.at = summary{phase: Preparing, reason: protocol.ReasonProviderUnavailable, message: fmt.Sprintf(
		"Attempt %d: %s This spends no retry. Attempt %d follows%s", s.m.Attempt, sentence(f.Message), s.m.Attempt+1, s.follows(n.granted))}
	return s.agentUnlessOver(n)
}
