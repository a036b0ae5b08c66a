// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// TestWhatAnAgentHasSaid is bounded, without secrets, and text that a terminal only shows.
func TestWhatAnAgentHasSaid(t *testing.T) {
	var s State
	// step of surgery that leaves out before, and what is written down of it.
	note := func(step steering.Step, bytes int64, before, after string) protocol.SteeringStep {
		d := &decision{s: &s, f: Facts{Recorded: journal.Steered{Bytes: bytes}}}
		d.note(steering.TurnContext{}, step, false)
		d.leftOut([]byte(before), after)
		return d.effects([]byte("{}")).Steps[0]
	}
	token := "ghp_" + "x7Kq2mVw9TzR4bNc8LdY1sHf6JgPaE3uQ5oi"
	hostile := "\x1b[2J\x00\xff\u202e " + token + " "
	step := steering.Step{Rung: steering.Surgery, Kind: anomaly.AgentLooping, Message: strings.Repeat(hostile, 1000), Finding: anomaly.Finding{Evidence: strings.Repeat(hostile, 1000)}}
	(&decision{s: &s}).leftOut([]byte("nothing was decided"), "")
	for _, before := range []string{hostile, strings.Repeat("a", protocol.MaxSteeringBefore-20) + token, strings.Repeat("\x1b[2J\xff\u202e", 50_000) + token} {
		x := note(step, 0, before, strings.Repeat("b", protocol.MaxSteeringAfter)+hostile)
		for what, text := range map[string]struct {
			text string
			most int
		}{
			"evidence": {x.Evidence, protocol.MaxSteeringEvidence}, "message": {x.Message, protocol.MaxSteeringMessage},
			"before": {x.Before, protocol.MaxSteeringBefore}, "after": {x.After, protocol.MaxSteeringAfter},
		} {
			if text.text == "" || len(text.text) > text.most || !utf8.ValidString(text.text) || strings.ContainsAny(text.text, "\x1b\x00\u202e") {
				t.Errorf("%s: %d bytes, %.200q", what, len(text.text), text.text)
			}
		}
		if strings.Contains(x.Before, token[:12]) || strings.Contains(x.After, token[:12]) || x.Missing == "" {
			t.Errorf("a secret is written down, or it is not said what is missing: %q", x.Missing)
		}
	}
	// Of so many secrets nobody can tell whether all are found.
	if x := note(step, 0, strings.Repeat(hostile, 20_000), "tried"); x.Before != "" || x.After != "tried" || !strings.Contains(x.Missing, "would take too long") {
		t.Errorf("%+v", x)
	}
	if x := note(step, maxLeftOut, "more", "more"); x.Before+x.After != "" || !strings.Contains(x.Missing, "more than 8 MiB") {
		t.Errorf("%+v", x)
	}
}

// TestTheEndOfAConversation ends its anomalies, each with the highest rung that was tried, whichever was tried last.
func TestTheEndOfAConversation(t *testing.T) {
	s := State{Task: "form", Anomalies: anomaly.State{Episodes: []anomaly.Episode{
		{Finding: anomaly.Finding{Kind: anomaly.AgentLooping, Thread: 1}, Tried: []policy.Rung{policy.RungNoTools, policy.RungDirective}},
		{Finding: anomaly.Finding{Kind: anomaly.AgentStalled, Thread: 1}},
	}}}
	var got []string
	for _, x := range s.Anew(Facts{}).Steps {
		got = append(got, fmt.Sprintf("%d %s %s %t", x.Sequence, x.Anomaly, x.Rung, x.Over))
	}
	if want := []string{"1 AgentLooping NoTools true", "2 AgentStalled Observe true"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
