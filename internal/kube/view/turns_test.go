// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestTimesEndInTime: documents of this API name points in time as the kinds do. A step of steering keeps the name that the journal on the
// trusted volume has for it (docs/adr/0110).
func TestTimesEndInTime(t *testing.T) {
	recorded := map[string]bool{"SteeringStep.time": true}
	for _, document := range []reflect.Type{reflect.TypeFor[protocol.Turn](), reflect.TypeFor[protocol.FileEvent](), reflect.TypeFor[protocol.SteeringStep]()} {
		found := false
		for field := range document.Fields() {
			if field.Type != reflect.TypeFor[time.Time]() {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if found = true; !strings.HasSuffix(name, "Time") && !recorded[document.Name()+"."+name] {
				t.Errorf("%s.%s is a time: give it a name that ends in Time", document.Name(), name)
			}
		}
		if !found {
			t.Errorf("%s has no time", document.Name())
		}
	}
}

// TestNoTerminalActsOnARecord: what models, tools and files say comes to people with its control characters escaped, and a program gets it as it is.
func TestNoTerminalActsOnARecord(t *testing.T) {
	const evil = "a\x1b[2Jb"
	turns := []protocol.Turn{{
		Task: evil, Text: evil, Tools: []protocol.ToolCall{{Name: evil, Arguments: evil}}, Formatted: evil,
		Violations: []protocol.TurnViolation{{Type: evil, Severity: evil, Message: evil}},
	}}
	steps := []protocol.SteeringStep{{Task: evil, Evidence: evil, Message: evil, Before: evil, After: evil, Missing: evil}}
	events := []protocol.FileEvent{{Type: "Added", Path: evil}}
	for name, write := range map[string]func(w http.ResponseWriter, asJSON bool){
		"turns":    func(w http.ResponseWriter, asJSON bool) { writeTurns(w, turns, true, asJSON) },
		"steering": func(w http.ResponseWriter, asJSON bool) { writeSteering(w, steps, true, asJSON) },
		"events":   func(w http.ResponseWriter, asJSON bool) { writeEvents(w, "login", events, asJSON) },
	} {
		w := httptest.NewRecorder()
		write(w, false)
		if text := w.Body.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, `a\u001b[2Jb`) {
			t.Errorf("%s: %q", name, text)
		}
		w = httptest.NewRecorder()
		write(w, true)
		if text := w.Body.String(); !strings.Contains(text, `"a\u001b[2Jb"`) {
			t.Errorf("%s for programs: %q", name, text)
		}
	}
}

// TestNobodyForgesARecord: what models, tools and files say makes neither a row of a table nor a heading between texts.
func TestNobodyForgesARecord(t *testing.T) {
	const row, heading = "x\n7\t2026-11-25T12:00:00Z\v\f\r", "x\n[result of Bash] 2 bytes\n\n[calls Bash] rm\ntidewaiter: this record is not complete"
	turn := protocol.Turn{
		Task: row, Backend: row, Model: row, Role: row, Reason: row, Detail: row, Text: heading, Formatted: heading,
		Tools:       []protocol.ToolCall{{Name: heading, Arguments: heading}},
		Violations:  []protocol.TurnViolation{{Type: heading, Severity: heading, Message: heading}},
		ToolResults: []protocol.ToolResult{{Call: heading, Tool: heading, Text: heading, SHA256: heading}},
	}
	step := protocol.SteeringStep{Task: row, Anomaly: row, Rung: row, Channel: row, Evidence: row, Message: heading, Before: heading, After: heading, Missing: heading}
	event := protocol.FileEvent{Type: row, Path: row}
	for name, tc := range map[string]struct {
		write func(w http.ResponseWriter)
		lines int // that the record itself has, of those that begin with a number, a bracket or our name
	}{
		"turns":    {func(w http.ResponseWriter) { writeTurns(w, []protocol.Turn{turn}, true, false) }, 1 + 1 + 1 + 1 + 1},
		"errors":   {func(w http.ResponseWriter) { writeTurns(w, []protocol.Turn{{Answer: heading}}, true, false) }, 1},
		"steering": {func(w http.ResponseWriter) { writeSteering(w, []protocol.SteeringStep{step}, true, false) }, 1 + 1 + 1 + 1},
		"events":   {func(w http.ResponseWriter) { writeEvents(w, "login", []protocol.FileEvent{event}, false) }, 1},
	} {
		w := httptest.NewRecorder()
		tc.write(w)
		lines := 0
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "0") || strings.HasPrefix(line, "7") || strings.HasPrefix(line, "[") || strings.HasPrefix(line, "tidewaiter:") {
				lines++
			}
		}
		if lines != tc.lines {
			t.Errorf("%s: %d lines look like the record's own, want %d:\n%s", name, lines, tc.lines, w.Body)
		}
	}
}

// TestTurnsShowResultsOfTools: before the answer, so that no terminal acts on them; programs get them as they are.
func TestTurnsShowResultsOfTools(t *testing.T) {
	turns := []protocol.Turn{{
		Sequence: 7, Text: "I see.", MoreToolResults: 2,
		ToolResults: []protocol.ToolResult{
			{Call: "toolu_1", Tool: "Bash", Bytes: 20, SHA256: "ab01", Failed: true, Text: "No such\x1b[2J file.\n\n"}, {Tool: "evil\x07", Bytes: 3, SHA256: "cd02"}, {Call: "c", SHA256: "ef03"},
		},
	}}
	w := httptest.NewRecorder()
	writeTurns(w, turns, true, false)
	const want = `
[result of Bash] 20 bytes, SHA-256 ab01, call toolu_1, an error
No such\u001b[2J file.

[result of evil\u0007] 3 bytes, SHA-256 cd02, call without an ID

[result of a tool] 0 bytes, SHA-256 ef03, call c

[2 more results are not in the ledger]

I see.
`
	_, got, _ := strings.Cut(w.Body.String(), "\n7 ")
	_, got, _ = strings.Cut(got, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("for people (-want +got):\n%s", diff)
	}
	w = httptest.NewRecorder()
	writeTurns(w, turns, true, true)
	var read protocol.Turns
	if err := json.Unmarshal(w.Body.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(turns, read.Turns); diff != "" {
		t.Errorf("for programs (-want +got):\n%s", diff)
	}
	w = httptest.NewRecorder()
	writeTurns(w, turns, false, false)
	if text := w.Body.String(); strings.Contains(text, "result of") {
		t.Errorf("a list: %s", text)
	}
}
