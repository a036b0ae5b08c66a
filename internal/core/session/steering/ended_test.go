// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TestEnded: what follows on the end of an agent by a turn without tools, and then on the next such end without another turn.
func TestEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		session bool
		ladder  Rung
		spent   []Rung
		want    []Rung
	}{
		"session":                         {true, Nudge, nil, []Rung{NoTools, Block, Block}},
		"session, hold":                   {true, Hold, nil, []Rung{NoTools, Block}},
		"session, restart":                {true, Restart, nil, []Rung{NoTools, Restart}},
		"session, block":                  {true, Block, nil, []Rung{NoTools, Restart}},
		"session, was started anew":       {true, Block, []Rung{Restart, Rollback}, []Rung{NoTools, Block}},
		"no session":                      {false, Nudge, nil, []Rung{Restart}},
		"no session, restart":             {false, Restart, nil, []Rung{Restart}},
		"no session, was started anew":    {false, Nudge, []Rung{Restart}, []Rung{Block}},
		"no session, ended in a row":      {false, Nudge, []Rung{NoTools}, []Rung{Block}},
		"no session, restart, ended anew": {false, Restart, []Rung{NoTools}, []Rung{Restart}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Defaults()
			r.Ladder = tc.ladder
			f := anomaly.Finding{Kind: anomaly.AgentLooping, Thread: 1, Main: true, Turn: 2, RunTurn: 5, Since: epoch, Tier: anomaly.Breaker, Tool: "Bash", Evidence: "Bash has failed 9 times"}
			s, e := State{Spent: tc.spent}, anomaly.Episode{Finding: f, Tried: []Rung{Nudge, NoTools}}
			at := TurnContext{Thread: 1, Kind: conversation.KindMain, RunTurn: 12, Now: epoch.Add(3 * time.Minute), Clock: true}
			for i, want := range tc.want {
				step := s.Ended(f, &e, at, tc.session, r)
				if step.Rung != want || step.Over || step.Thread != 1 || step.Kind != f.Kind {
					t.Fatalf("%d. %+v, want %s", i+1, step, want)
				}
				if (step.Finding.Evidence != f.Evidence) != (want == Block) {
					t.Errorf("people are told %q of %s", step.Finding.Evidence, want)
				}
				if begin := "[SUPERVISOR] Bash has failed 9 times (first seen in turn 5, 3m ago). "; want == NoTools && step.Message != begin+resumed || !strings.HasPrefix(step.Message, begin) {
					t.Errorf("the agent is told %q", step.Message)
				}
			}
			if !slices.Contains(s.Spent, NoTools) || !slices.Contains(e.Tried, tc.want[0]) {
				t.Errorf("%+v, %+v", s, e)
			}
			if anew := s.Anew([]anomaly.Episode{e}); !slices.Contains(anew.Spent, NoTools) {
				t.Errorf("anew: %+v", anew)
			}
		})
	}
}

// TestNoFurtherTurnWithoutTools: an agent that has ended with one gets none again on its main thread. Those that work for it do.
func TestNoFurtherTurnWithoutTools(t *testing.T) {
	for thread, want := range map[int]bool{1: false, 2: true} {
		s := newSession(t)
		s.state.Spent = []Rung{NoTools}
		s.turn(2)
		got := false
		for range 40 {
			for _, step := range s.turn(thread, call("Deploy", "{}", "Error: no", conversation.FailureTool)) {
				got = got || step.Rung == NoTools
			}
		}
		if got != want {
			t.Errorf("thread %d: %v", thread, got)
		}
	}
}
