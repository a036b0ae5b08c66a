// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// findings are what is wrong now.
func findings(s *State, r Thresholds, now time.Time) []Finding {
	s.Look(r, now)
	found := make([]Finding, 0, len(s.Episodes))
	for _, e := range s.Episodes {
		found = append(found, e.Finding)
	}
	return found
}

// TestEpisode: one begins with a finding, keeps what was tried in it, also by a watchdog that begins anew, and is over once.
func TestEpisode(t *testing.T) {
	var s State
	r, now, turn := Defaults(), epoch, 0
	deploys := func(failure conversation.Failure, result string) (over []Episode) {
		now, turn = now.Add(time.Minute), turn+1
		step := conversation.Step{Call: conversation.Call{Name: "Deploy", Arguments: conversation.QuoteOf(result)}, Result: conversation.QuoteOf(result), Failure: failure}
		s.Turn(conversation.Turn{Thread: 1, Kind: conversation.KindMain, Number: turn, Steps: []conversation.Step{step}}, now)
		return s.Look(r, now)
	}
	for s.Episode(AgentLooping, 1) == nil {
		if over := deploys(conversation.FailureTool, "cannot"); len(over) > 0 || turn > 20 {
			t.Fatalf("turn %d: over is %+v", turn, over)
		}
	}
	began := s.Episode(AgentLooping, 1).Finding
	s.Episode(AgentLooping, 1).Climb(policy.RungNoTools, 4, now)
	s.Episode(AgentLooping, 1).Climb(policy.RungDirective, 5, now)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	s = State{}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	deploys(conversation.FailureTool, "cannot")
	want := Episode{Tried: []policy.Rung{policy.RungNoTools, policy.RungDirective}, Held: int64(turn), RunTurn: 5, At: s.Episode(AgentLooping, 1).At}
	got := *s.Episode(AgentLooping, 1)
	if got.Finding.Since != began.Since || got.Finding.Turn != began.Turn || got.Finding.Count <= began.Count {
		t.Errorf("found %+v, which was %+v", got.Finding, began)
	}
	got.Finding = Finding{}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Finding{})); diff != "" || got.Highest() != policy.RungNoTools {
		t.Errorf("highest %s (-want +got):\n%s", got.Highest(), diff)
	}
	var over []Episode
	for i := range 10 {
		over = append(over, deploys(conversation.FailureNone, string(rune('a'+i)))...)
	}
	if len(over) != 1 || over[0].Finding.Kind != AgentLooping || len(over[0].Tried) != 2 || len(s.Episodes) > 0 {
		t.Errorf("over is %+v, and %+v is not", over, s.Episodes)
	}
}
