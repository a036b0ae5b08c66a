// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly_test

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
)

// TestAwaits: an agent whose model has given its last answer waits for what its tools have left running, and for nothing else.
func TestAwaits(t *testing.T) {
	epoch := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	at := func(minutes float64) time.Time { return epoch.Add(time.Duration(minutes * float64(time.Minute))) }
	age := func(minutes float64) time.Duration { return time.Duration(minutes * float64(time.Minute)) }
	call := conversation.Answer{Ended: true, Acts: true, Tools: []conversation.Tool{{Name: "Bash"}}}
	final := conversation.Answer{Ended: true, Text: []byte("I wait for the build.")}
	rules := anomaly.Thresholds{Silence: 10 * time.Minute, ModelSilence: 10 * time.Minute, ToolSilence: 30 * time.Minute}
	turn := func(thread int) conversation.Turn {
		return conversation.Turn{Thread: thread, Kind: conversation.KindMain, Number: 1}
	}
	// worked has called a tool after two minutes and given its last answer after five.
	worked := func() *anomaly.State {
		s := &anomaly.State{}
		s.Turn(turn(1), at(1))
		s.Answer(1, call, 0, at(2))
		s.Turn(turn(1), at(4))
		s.Answer(1, final, 0, at(5))
		return s
	}
	pulse := func(s *anomaly.State, commands ...anomaly.Command) {
		s.Pulse(anomaly.Pulse{Processes: len(commands) + 1, Commands: commands}, at(8))
		s.Started(at(0))
	}
	server, bash, build := anomaly.Command{Name: "mcp-server", Age: age(7.5)}, anomaly.Command{Name: "bash", Age: age(5)}, anomaly.Command{Name: "make", Age: age(4.9)}
	for name, tc := range map[string]struct {
		change func(s *anomaly.State)
		want   string
	}{
		"a build in a shell":             {func(s *anomaly.State) { pulse(s, build, bash, server) }, `the background command "make"`},
		"a shell alone":                  {func(s *anomaly.State) { pulse(s, bash, server) }, `the background command "bash"`},
		"its own server":                 {func(s *anomaly.State) { pulse(s, server) }, ""},
		"nothing":                        {func(s *anomaly.State) { pulse(s) }, ""},
		"a name that a terminal acts on": {func(s *anomaly.State) { pulse(s, anomaly.Command{Name: "a\x1b[2J\n\xff\u202e", Age: age(1)}) }, `the background command "a\x1b[2J\n\xff\u202e"`},
		"a model that is asked":          {func(s *anomaly.State) { pulse(s, build); s.Turn(turn(1), at(8.5)) }, ""},
		"a tool at work":                 {func(s *anomaly.State) { s.Answer(1, call, 0, at(6)); pulse(s, build) }, ""},
		"a person that it waits for":     {func(s *anomaly.State) { pulse(s, build); s.Used.Idle = true }, ""},
		"an answer that was an error": {func(s *anomaly.State) {
			*s = anomaly.State{}
			s.Turn(turn(1), at(1))
			s.Failed(1, failures.Answer{Status: 500}, at(2))
			pulse(s, build)
		}, ""},
		"a pulse that is old":               {func(s *anomaly.State) { pulse(s, build); s.Pulsed = at(-3) }, ""},
		"what an agent before it has begun": {func(s *anomaly.State) { pulse(s, build); s.Started(at(7)) }, ""},
	} {
		s := worked()
		tc.change(s)
		if got := s.Awaits(rules, at(9)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
