// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// Resume from a stored state, which may be missing or older than the journal. Resume reads later decisions from the journal. The session
// still wants an act that nobody has settled, and still gives the agent texts that wait for lines or tools. It does not try again what it
// tried with the whole run. A step that it decides again because its request comes again is the same step.
func (s *State) Resume(f Facts) {
	if s.Attempt != f.Attempt { // what was tried with the run before need not fail again
		s.Attempt, s.Steering.Spent, s.Bared = f.Attempt, nil, nil
		s.Board.Anew() // the workspace begins with valid work, and the agent learns that
	}
	nothing := s.Task == ""
	for _, x := range f.Recorded.Steps {
		if x.Sequence <= s.Step || x.Attempt != f.Attempt || x.Task != f.Terms.Task {
			continue
		}
		if nothing {
			s.Task, s.Anomalies.Task = x.Task, x.Task
		}
		if s.Task == x.Task {
			s.recall(x, f.Terms.Rules)
		}
	}
	if nothing { // the conversation is heard again: none of its turns is one that was
		s.recalled = nil
		for _, x := range f.Recorded.Steps {
			s.Turns = max(s.Turns, x.Turn)
		}
	}
	for _, x := range s.recalled { // its request comes again, or what follows it
		s.Turns = max(s.Turns, x.Turn-1)
	}
	s.Anomalies.RunTurn = max(s.Anomalies.RunTurn, s.Turns)
	s.Step = max(s.Step, f.Recorded.Sequence)
}

// recall a step that was decided after what is remembered.
func (s *State) recall(x protocol.SteeringStep, r steering.Rules) {
	finding := anomaly.Finding{Kind: anomaly.Kind(x.Anomaly), Thread: x.Thread, Detector: x.Detector, Evidence: x.Evidence, Main: true}
	switch s.take(x); {
	case x.Turn > 0:
		s.recalled = append(s.recalled, x)
	case x.Over:
		s.Anomalies.Forget(finding.Kind, x.Thread)
	default:
		s.Anomalies.Recall(finding, policy.Rung(x.Rung), x.Time)
	}
	rung := policy.Rung(x.Rung)
	ends := rung == steering.NoTools && x.Request == "" // the agent has ended with such a turn
	if rung == steering.NoTools && !ends && !x.Over {
		s.Bared = &Bared{Turn: x.Turn, Finding: finding}
	}
	if x.Over || !ends && !(steering.Step{Rung: rung}).Halts() {
		return
	}
	if ends {
		s.Steering.Spend(steering.NoTools)
		s.Bared = nil // nobody knows whether the continuing agent has been heard since
	}
	if a := s.Act; a != nil && a.Rung != steering.Hold { // it was settled, or this one would not have been wanted
		s.Steering.Spend(a.Rung)
	}
	s.Act = &Act{ID: actID(x.Sequence), Task: x.Task, Rung: rung, Thread: x.Thread, Evidence: x.Evidence, Message: x.Message}
	if rung == steering.Hold && r.Ladder != steering.Hold {
		s.Act.Until = x.Time.Add(r.HoldFor)
	}
}

// same gives the number of a step that was written down before what led to it was remembered; 0 for none.
func (s *State) same(x protocol.SteeringStep) int64 {
	i := slices.IndexFunc(s.recalled, func(o protocol.SteeringStep) bool {
		return o.Task == x.Task && o.Thread == x.Thread && o.Turn == x.Turn && o.Anomaly == x.Anomaly && o.Rung == x.Rung && o.Over == x.Over
	})
	if i < 0 {
		return 0
	}
	n := s.recalled[i].Sequence
	s.recalled = slices.Delete(s.recalled, i, i+1)
	return n
}

// actID is the id of what a step wants done with the whole run.
func actID(step int64) string { return fmt.Sprintf("%s%d", protocol.SteeringRequests, step) }
