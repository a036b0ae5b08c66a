// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

const leftOut = "left out of the conversation here"

// TestSurgery: calls that fail again and again are left out of what the model sees, each with its result, and in the same way of every later
// request; also by a watchdog that begins anew. What the agent compacts is forgotten.
func TestSurgery(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		a.policy.Anomalies.Ladder, a.policy.Anomalies.CheckEveryTurns = policy.RungSurgery, 1
		fail := func() {
			a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
		}
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		sent := ""
		for range 12 {
			fail()
			if sent = a.ask(); strings.Contains(sent, leftOut) {
				break
			}
		}
		made := a.calls
		if n := strings.Count(sent, "the host cannot be reached"); n != 1 || strings.Count(sent, "call_1\"") != 2 {
			t.Fatalf("%d of %d failures are left: %s", n, made-1, sent)
		}
		if want := fmt.Sprintf(`[SUPERVISOR] %d calls are left out of the conversation here: Deploy with \"{\\\"to\\\":\\\"web\\\"}\" %d times, which failed (ToolError).`, made-2, made-2); !strings.Contains(sent, want) {
			t.Errorf("%s\nhas not %s", sent, want)
		}
		for call := 1; call <= made; call++ { // each with its result, or neither
			if n := strings.Count(sent, fmt.Sprintf(`call_%d"`, call)); n != 0 && n != 2 {
				t.Errorf("call %d is there %d times: %s", call, n, sent)
			}
		}
		common := strings.TrimSuffix(sent[:strings.LastIndex(sent, `],"tools"`)], "]}")
		a.begin()
		for i := range 3 {
			a.entries = append(a.entries, a.called("Edit", fmt.Sprintf(`{"file_path":"/workspace/%d.go","old_string":"a","new_string":"b"}`, i), fmt.Sprintf("done %d", i))...)
			if next := a.ask(); !strings.HasPrefix(next, common) {
				t.Fatalf("the request after it:\n%s\nis to begin with\n%s", next, common)
			}
		}
		a.entries = []string{a.entries[0], a.says("user", "Summary: nothing works.")}
		if next := a.ask(); strings.Contains(next, supervisor) {
			t.Errorf("said of what is not there any more: %s", next)
		}
	})
}

// TestNothingToLeaveOut: where nothing repeats itself as a whole the model is told all the same.
func TestNothingToLeaveOut(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.policy.Anomalies.Ladder, a.policy.Anomalies.CheckEveryTurns = policy.RungSurgery, 1
	told := 0
	for i := range 8 {
		call := a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")
		// A person says something with each result.
		call[1] = strings.TrimSuffix(call[1], "]}") + fmt.Sprintf(`,{"type":"text","text":"Word %d."}]}`, i)
		a.entries = append(a.entries, call...)
		sent := a.ask()
		if strings.Contains(sent, leftOut) || strings.Count(sent, "the host cannot be reached") != i+1 {
			t.Fatalf("left out: %s", sent)
		}
		told = strings.Count(sent, supervisor)
	}
	if told < 2 {
		t.Errorf("told %d times", told)
	}
}

// TestCallsWithoutIDs: models before Gemini 3 give none, and clients give none either, or only to the results.
func TestCallsWithoutIDs(t *testing.T) {
	for name, ids := range map[string]func(string) (string, string){
		"none":           func(string) (string, string) { return "", "" },
		"of the results": func(call string) (string, string) { return "", "Deploy-" + call },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, "gemini")
			a.ids = ids
			a.policy.Anomalies.Ladder, a.policy.Anomalies.CheckEveryTurns = policy.RungSurgery, 1
			sent := ""
			for range 12 {
				a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
				if sent = a.ask(); strings.Contains(sent, leftOut) {
					break
				}
			}
			if n := strings.Count(sent, `"functionResponse"`); n != 1 || strings.Count(sent, `"functionCall"`) != 1 || !strings.Contains(sent, fmt.Sprintf(`Deploy with \"{\\\"to\\\":\\\"web\\\"}\" %d times`, a.calls-1)) {
				t.Errorf("%d of %d results are left: %s", n, a.calls, sent)
			}
		})
	}
}
