// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestGatesWithoutResultsEnd: what a gate runs is the agent's code. If it makes each of its pods end without a result, the pods do not follow each other
// for ever.
func TestGatesWithoutResultsEnd(t *testing.T) {
	s := newSim()
	s.spec.Mode = "Deterministic"
	s.gated("unit")
	s.settle()
	s.work()
	s.settle()
	unanswered := func() {
		t.Helper()
		before := s.memory.Attempt
		if s.memory.Job.Run != RunGate || !s.final(protocol.OutcomeProving, protocol.ReasonCheckpointFailed, `gate "unit" has no result`) {
			t.Fatalf("no pod of a gate may report: %s", s.line())
		}
		s.run.Final.Gate, s.run.Final.Task = "task-unit", "login"
		s.endPods()
		s.settle()
		if s.memory.Phase != Failed && s.memory.Attempt == before {
			s.pauseUntilNext(t)
		}
	}
	for i := 1; i < freeEnds+s.spec.Retries+1; i++ {
		if unanswered(); s.memory.Phase == Failed {
			t.Fatalf("after %d pods without a result: %s", i, s.line())
		}
	}
	unanswered()
	c := s.memory.Condition(ConditionSucceeded)
	if s.memory.Phase != Failed || c.Reason != ReasonPodEnded || !strings.Contains(c.Message, "no result") {
		t.Fatalf("%s: %+v", s.line(), c)
	}
	s.spec.Requests = []Request{{ID: "look", Kind: RequestCheckpoint}}
	s.settle()
	s.final(protocol.OutcomeProving, protocol.ReasonProving, "a gate must pass")
	s.endPods()
	s.settle()
	if was := c; s.memory.Condition(ConditionSucceeded) != was || s.memory.Phase != Failed {
		t.Fatalf("after an errand: %s: %+v", s.line(), s.memory.Condition(ConditionSucceeded))
	}
	s.spec.Requests = []Request{{ID: "again", Kind: RequestRetry}}
	s.settle()
	if s.memory.Job.Run != RunAgent || s.memory.Unordered != 0 {
		t.Fatalf("after a retry: %s", s.line())
	}
	s.work()
	s.settle()
	unanswered()
	if s.memory.Phase == Failed {
		t.Errorf("after a retry and another pod without a result: %s", s.line())
	}
}
