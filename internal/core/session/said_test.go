// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// TestManyNotes: a long conversation loses its oldest notes now and then, and not one with each that is new: each loss changes the request, so that the
// provider has not cached it.
func TestManyNotes(t *testing.T) {
	var s State
	losses, first := 0, 0
	for i := range 1000 {
		notes := append(slices.Clone(s.thread(1).Notes), dialect.Note{After: i, Text: fmt.Sprint(i)})
		s.remember(1, i, dialect.Edits{Notes: notes})
		have := s.thread(1).Notes
		if n := len(have); n > maxNotes || have[n-1].After != i {
			t.Fatalf("%d notes, the newest %+v", n, have[n-1])
		}
		if have[0].After != first {
			losses, first = losses+1, have[0].After
		}
	}
	if most := 1000 / (maxNotes / 2); losses == 0 || losses > most {
		t.Errorf("the oldest note changed %d times, more than %d", losses, most)
	}
}

// TestWhatWaitsToBeSaid is bounded: the newest has room.
func TestWhatWaitsToBeSaid(t *testing.T) {
	var s State
	for i := range 100 {
		s.later(1, fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000)))
	}
	if n := len(s.unsaid(1)); n > maxUnsaid || !strings.Contains(s.unsaid(1), "\n\n99 x") {
		t.Errorf("%d bytes wait to be said: %.100s", n, s.unsaid(1))
	}
}

// TestSurgeryBehindSurgery: what is left out behind what was left out before is summed up, too.
func TestSurgeryBehindSurgery(t *testing.T) {
	for name, call := range map[string][]string{
		"anthropic": {
			`{"role":"assistant","content":[{"type":"tool_use","id":"c%[1]d","name":%[2]q,"input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%[1]d","content":%[3]q}]}`,
		},
		"openai-chat": {
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":%[2]q,"arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c%[1]d","content":%[3]q}`,
		},
		"openai-responses": {
			`{"type":"function_call","call_id":"c%[1]d","name":%[2]q,"arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c%[1]d","output":%[3]q}`,
		},
		"gemini": {
			`{"role":"model","parts":[{"functionCall":{"id":"c%[1]d","name":%[2]q,"args":{}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":"c%[1]d","name":%[2]q,"response":{"output":%[3]q}}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := dialect.Find(name)
			entries := []string{`{"role":"user","content":"Add a form."}`}
			if name == "gemini" {
				entries = []string{`{"role":"user","parts":[{"text":"Add a form."}]}`}
			}
			for i, tool := range []string{"Deploy", "Deploy", "Deploy", "Build", "Build", "Build", "Build"} {
				for _, entry := range call {
					text := fmt.Sprintf(entry, i, tool, fmt.Sprintf("Error: host %d cannot be reached", i))
					text, _, _ = strings.Cut(text, "%!(EXTRA") // an entry has no use for all of them
					entries = append(entries, text)
				}
			}
			request, err := d.ReadRequest([]byte(`{"model":"m","` + d.History + `":[` + strings.Join(entries, ",") + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			var s State
			turn := s.Book.Observe(request.Conversation())
			before := dialect.Edits{Cuts: []dialect.Cut{{From: 1, To: 1 + 3*len(call)}}}
			decision := &decision{s: &s}
			said := decision.operated(Pending{request: request, turn: turn}, steering.Step{Finding: anomaly.Finding{Tool: "Build"}}, before)
			if sent := string(request.Steer(said, turn.Ends)); len(said.Notes) != 1 || !strings.Contains(sent, "3 calls are left out") {
				t.Errorf("%+v: %s", said.Notes, sent)
			}
		})
	}
}
