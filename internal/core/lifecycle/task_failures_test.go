// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestReportedFailuresAreCounted: a watchdog that reports the first failure of a task again and again does not start its agent for ever. A change of the
// spec, and a retry, begin the count again.
func TestReportedFailuresAreCounted(t *testing.T) {
	s := newSim()
	s.spec.Retries, s.spec.Continuing = 1, 2
	s.settle()
	fail := func(n int) {
		t.Helper()
		before := s.memory.Attempt
		if !s.failedTask(n) {
			t.Fatalf("no pod may report: %s", s.line())
		}
		s.endPods()
		s.settle()
		if s.memory.Phase != Failed && s.memory.Attempt == before {
			s.pauseUntilNext(t)
		}
	}
	const most = 6 // two tasks and one that a user may have removed, with two failures each
	for i := 1; i <= most; i++ {
		fail(1)
		if s.memory.TaskFailures != i || s.memory.Failures != 0 || s.memory.Phase == Failed {
			t.Fatalf("after %d failures: counted %d, of the Feature %d: %s", i, s.memory.TaskFailures, s.memory.Failures, s.line())
		}
	}
	s.spec.Generation++
	s.settle()
	if s.memory.TaskFailures != 0 {
		t.Fatalf("the spec has changed, and %d failures are counted", s.memory.TaskFailures)
	}
	for range most + 1 {
		fail(1)
	}
	c := s.memory.Condition(ConditionSucceeded)
	if s.memory.Phase != Failed || c.Reason != protocol.ReasonAgentFailed || !strings.Contains(c.Message, "It failed 7 times and spec.maxRetries is 1.") {
		t.Fatalf("%s: %+v", s.line(), c)
	}
	s.spec.Requests = []Request{{ID: "again", Kind: RequestRetry}}
	s.settle()
	fail(1)
	if s.memory.TaskFailures != 1 || s.memory.Phase == Failed {
		t.Errorf("after a retry: counted %d: %s", s.memory.TaskFailures, s.line())
	}
}

// TestRemovedTasksDoNotFailAFeature: what failed in tasks that a user has removed does not count any more, also if the edit and another report arrive
// together.
func TestRemovedTasksDoNotFailAFeature(t *testing.T) {
	s := newSim()
	s.spec.Retries, s.spec.Continuing = 5, 5
	s.settle()
	for n := range 14 {
		s.failedTask(1 + n%5)
		s.endPods()
		s.pauseUntilNext(t)
	}
	s.failedTask(4)
	s.endPods()
	s.spec.Continuing = 0
	s.spec.Generation++
	if s.settle(); s.memory.Phase == Failed {
		t.Fatalf("%s: %+v", s.line(), s.memory.Condition(ConditionSucceeded))
	}
}

// TestFailuresInAnAbortedTask do not count in the next task, for which the retries of the Feature count.
func TestFailuresInAnAbortedTask(t *testing.T) {
	s := newSim()
	s.spec.Retries, s.spec.Continuing = 2, 1
	s.settle()
	next := func() {
		t.Helper()
		s.endPods()
		s.pauseUntilNext(t)
	}
	for n := range 2 {
		s.failedTask(1 + n)
		next()
	}
	for range 2 { // the attempt has aborted the task, and the agent of the next one fails
		s.final(protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "the agent exited with code 3")
		next()
	}
	if s.memory.Failures != 2 || s.memory.Phase == Failed {
		t.Fatalf("%d failures: %s", s.memory.Failures, s.line())
	}
	s.final(protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "the agent exited with code 3")
	s.endPods()
	s.settle()
	if c := s.memory.Condition(ConditionSucceeded); s.memory.Phase != Failed || !strings.Contains(c.Message, "It failed 3 times and spec.maxRetries is 2.") {
		t.Errorf("%s: %+v", s.line(), c)
	}
}

// TestFewerRetries: a task that has failed more often than a user now allows is aborted by the next failure of its agent, also if the edit and the report
// arrive together.
func TestFewerRetries(t *testing.T) {
	for name, late := range map[string]bool{"after the report": true, "with the report": false} {
		t.Run(name, func(t *testing.T) {
			s := newSim()
			s.spec.Retries, s.spec.Continuing = 5, 1
			s.settle()
			for n := range 2 {
				s.failedTask(1 + n)
				s.endPods()
				s.pauseUntilNext(t)
			}
			s.failedTask(3)
			s.endPods()
			if late {
				s.settle()
			}
			s.spec.Retries = 1
			s.spec.Generation++
			s.settle()
			c := s.memory.Condition(ConditionSucceeded)
			if s.memory.Phase == Failed || !strings.Contains(c.Message, "It failed 3 times in its task and spec.maxRetries is 1: if it fails again, the task is aborted.") {
				t.Fatalf("%s: %+v", s.line(), c)
			}
			s.pauseUntilNext(t)
		})
	}
}

// TestATaskThatCannotBeAborted: the watchdog reports one failure more than the retries, and the Feature fails, as it would without Continue.
func TestATaskThatCannotBeAborted(t *testing.T) {
	s := newSim()
	s.spec.Retries, s.spec.Continuing = 2, 3
	s.settle()
	s.failedTask(3)
	s.endPods()
	s.settle()
	if c := s.memory.Condition(ConditionSucceeded); s.memory.Phase != Failed || !strings.Contains(c.Message, "It failed 3 times and spec.maxRetries is 2.") {
		t.Errorf("%s: %+v", s.line(), c)
	}
}
