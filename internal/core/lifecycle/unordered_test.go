// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"
)

// endByThemselves ends all pods as an agent can.
func (s *sim) endByThemselves(itself bool) {
	for i := range s.pods {
		s.pods[i].Started, s.pods[i].Ended, s.pods[i].ByItself = true, true, itself
	}
}

// TestPodsThatEndByThemselves: three are forgiven, as after a node that restarted; each further one spends a retry, however long it lived.
func TestPodsThatEndByThemselves(t *testing.T) {
	s := newSim()
	s.spec.Retries = 1
	s.settle()
	for i := 1; i <= freeEnds+1; i++ {
		s.now = s.now.Add(longEnough)
		s.endByThemselves(true)
		before := s.memory.Attempt
		s.settle()
		if s.memory.Attempt == before {
			s.pauseUntilNext(t)
		}
		if want := max(i-freeEnds, 0); s.memory.Unordered != i || s.memory.Failures != want || s.memory.Phase == Failed {
			t.Fatalf("after %d ends: unordered %d, %d failures, want %d: %s", i, s.memory.Unordered, s.memory.Failures, want, s.line())
		}
	}
	s.endByThemselves(true)
	s.settle()
	c := s.memory.Condition(ConditionSucceeded)
	if s.memory.Phase != Failed || c.Reason != ReasonPodEnded || !strings.Contains(c.Message, "as did 4 before it") || !strings.Contains(c.Message, "retry: {}") {
		t.Fatalf("%s: %+v", s.line(), c)
	}
	attempt := s.memory.Attempt
	s.now = s.now.Add(time.Hour)
	s.settle()
	if got := s.memory.Condition(ConditionSucceeded); s.memory.Attempt != attempt || got != c {
		t.Fatalf("it goes on, or says something else: %+v", got)
	}
	s.spec.Requests = []Request{{ID: "again", Kind: RequestRetry}}
	s.settle()
	if s.memory.Attempt != attempt+1 || s.memory.Unordered != 0 {
		t.Errorf("a person asks for a retry: %s, unordered %d", s.line(), s.memory.Unordered)
	}
}

// TestPodsThatAreEndedSpendNothing, however many: the cluster may move them.
func TestPodsThatAreEndedSpendNothing(t *testing.T) {
	s := newSim()
	s.spec.Retries = 0
	s.settle()
	for range 2 * freeEnds {
		s.now = s.now.Add(longEnough)
		s.endByThemselves(false)
		before := s.memory.Attempt
		s.settle()
		if s.memory.Attempt != before+1 {
			t.Fatalf("no attempt follows: %s", s.line())
		}
		if s.memory.Unordered != 0 || s.memory.Failures != 0 {
			t.Fatalf("unordered %d, %d failures", s.memory.Unordered, s.memory.Failures)
		}
	}
}
