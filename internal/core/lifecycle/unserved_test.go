// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// pauseUntilNext lets the time go on until the next attempt has started, and gives how long that took.
func (s *sim) pauseUntilNext(t interface {
	Helper()
	Fatalf(string, ...any)
}) time.Duration {
	t.Helper()
	attempt, began := s.memory.Attempt, s.now
	for range 2 * int(longestUnserved/time.Second) {
		if s.settle(); s.memory.Attempt > attempt {
			return s.now.Sub(began)
		}
		s.now = s.now.Add(time.Second)
	}
	t.Fatalf("no attempt follows: %s", s.line())
	return 0
}

// TestModelsDoNotAnswer: no retry is spent, the pauses grow, people are told why and when, and what an agent fails of itself counts as ever.
func TestModelsDoNotAnswer(t *testing.T) {
	s := newSim()
	s.spec.Retries = 0
	s.settle()
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute}
	for i, pause := range want {
		if !s.unserved(protocol.FailureProvider, "Status529") {
			t.Fatalf("attempt %d: nobody reports: %s", i+1, s.line())
		}
		s.settle()
		c := s.memory.Condition(ConditionSucceeded)
		at := s.memory.Job.EndedAt.Add(pause).UTC().Format(time.RFC3339)
		if c.Status != Unknown || c.Reason != protocol.ReasonProviderUnavailable || !strings.Contains(c.Message, "Status529") || !strings.Contains(c.Message, "This spends no retry") || !strings.Contains(c.Message, at) {
			t.Fatalf("attempt %d: %+v, want a word on %s", i+1, c, at)
		}
		if u := s.memory.Unserved; u == nil || u.Attempts != i+1 || u.Class != protocol.FailureProvider || s.memory.Failures != 0 {
			t.Fatalf("attempt %d: %+v, %d failures", i+1, u, s.memory.Failures)
		}
		if got := s.pauseUntilNext(t); got < pause || got > pause+2*time.Second {
			t.Fatalf("attempt %d: the next one follows after %s, want %s", i+1, got, pause)
		}
	}
	s.final(protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "exit code 1")
	s.endPods()
	s.settle()
	if s.memory.Phase != Failed || s.memory.Failures != 1 || s.memory.Unserved != nil {
		t.Errorf("a failure of the agent itself: %s, %d failures, %+v", s.line(), s.memory.Failures, s.memory.Unserved)
	}
	if s.broken != "" {
		t.Error(s.broken)
	}
}

// TestWhatAnEndCounts: towards the retries, towards the attempts in a row that models did not answer, or neither.
func TestWhatAnEndCounts(t *testing.T) {
	unanswered := &protocol.Failure{Class: protocol.FailureProvider, Cause: "Status503", Calls: 1}
	for name, tc := range map[string]struct {
		outcome            string
		failure            *protocol.Failure
		errand             bool
		failures, unserved int
	}{
		"the agent's own failure":       {outcome: protocol.OutcomeAgentFailed, failures: 2},
		"no answer of a model":          {outcome: protocol.OutcomeAgentFailed, failure: unanswered, failures: 1, unserved: 4},
		"an errand that says it again":  {outcome: protocol.OutcomeAgentFailed, errand: true, failures: 1, unserved: 3},
		"an errand that says that":      {outcome: protocol.OutcomeAgentFailed, failure: unanswered, errand: true, failures: 1, unserved: 3},
		"a person who suspends":         {outcome: protocol.OutcomeSuspended, failures: 1, unserved: 3},
		"a manager that stops it":       {outcome: protocol.OutcomeStopped, failures: 1, unserved: 3},
		"work that needs a person":      {outcome: protocol.OutcomeBlocked, failures: 1},
		"work that waits for approval":  {outcome: protocol.OutcomeReadyToMerge, failures: 1},
		"an agent in another mode next": {outcome: protocol.OutcomeSwitched, failures: 1},
		"work that is delivered":        {outcome: protocol.OutcomeDelivered, failures: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Memory.Failures, o.Memory.Unserved, o.Memory.Job.Errand = 1, &Unserved{Attempts: 3}, tc.errand
			o.Run.Final = &Final{Epoch: 1, Outcome: tc.outcome, Failure: tc.failure}
			m := Next(o, noon).Memory
			unserved := 0
			if m.Unserved != nil {
				unserved = m.Unserved.Attempts
			}
			if m.Failures != tc.failures || unserved != tc.unserved {
				t.Errorf("%d failures and %d unanswered attempts, want %d and %d", m.Failures, unserved, tc.failures, tc.unserved)
			}
		})
	}
}

// TestAChangeIsTriedAtOnce: what a person changes after a failure of class Policy ends the pause, and a change elsewhere does not.
func TestAChangeIsTriedAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		class  string
		change func(*sim)
		atOnce bool
	}{
		"other backends":              {protocol.FailurePolicy, func(s *sim) { s.backends = "b2" }, true},
		"another policy":              {protocol.FailurePolicy, func(s *sim) { s.policy = "h2" }, true},
		"a gateway that is not there": {protocol.FailurePolicy, func(s *sim) { s.backends = "" }, false},
		"nothing":                     {protocol.FailurePolicy, func(*sim) {}, false},
		"another cause":               {protocol.FailureProvider, func(s *sim) { s.backends, s.policy = "b2", "h2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim()
			s.backends = "b1"
			s.settle()
			s.unserved(test.class, "ModelNotAvailable")
			s.settle()
			test.change(s)
			if got := s.pauseUntilNext(t); (got == 0) != test.atOnce {
				t.Errorf("the next attempt follows after %s", got)
			}
		})
	}
}

// TestAnAgentThatProvokesErrors: whatever it has its attempts end with, it gets a bounded number of them without a person, and never one before its pause.
func TestAnAgentThatProvokesErrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSim()
		s.spec.Retries = rapid.IntRange(0, 3).Draw(t, "retries")
		s.settle()
		most := int64((s.spec.Retries + 1) * (maxUnserved + 1))
		rare := rapid.IntRange(1, 60).Draw(t, "one in so many fails")
		for s.memory.Phase != Blocked && s.memory.Phase != Failed {
			if rapid.IntRange(1, rare).Draw(t, "which") == 1 {
				s.final(protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "exit code 1")
				s.endPods()
			} else {
				s.unserved(rapid.SampledFrom([]string{protocol.FailureProvider, protocol.FailurePolicy, protocol.FailureInfrastructure}).Draw(t, "class"), "Status503")
			}
			s.settle()
			if s.memory.Attempt > most {
				t.Fatalf("%d attempts with %d retries", s.memory.Attempt, s.spec.Retries)
			}
			s.now = s.now.Add(longestUnserved)
			s.settle()
			if s.broken != "" {
				t.Fatal(s.broken)
			}
		}
		was := s.memory.Attempt
		s.now = s.now.Add(24 * time.Hour)
		if s.settle(); s.memory.Attempt != was {
			t.Fatal("another attempt follows without a person")
		}
		s.request(RequestRetry)
		if s.settle(); s.memory.Attempt != was+1 || s.memory.Unserved != nil {
			t.Fatalf("a person who asks gets no attempt, or no new count: %s, %+v", s.line(), s.memory.Unserved)
		}
	})
}

// TestAManagerThatIsRestarted: the pause goes on where it was, because it depends on the status alone.
func TestAManagerThatIsRestarted(t *testing.T) {
	s := newSim()
	s.settle()
	s.unserved(protocol.FailureProvider, "Status503")
	s.settle()
	for _, dies := range []fate{{at: 1}, {at: 1, lost: true}, {at: 2}, {at: 2, lost: true}, {at: 3}} {
		s.now = s.now.Add(time.Second)
		s.reconcile(s.look(false), dies)
		if s.memory.Attempt != 1 || s.memory.Unserved.Attempts != 1 {
			t.Fatalf("%s, %+v", s.line(), s.memory.Unserved)
		}
	}
	if got := s.pauseUntilNext(t); got != firstUnserved-5*time.Second {
		t.Errorf("the next attempt follows after another %s", got)
	}
}
