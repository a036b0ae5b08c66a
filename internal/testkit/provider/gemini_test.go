// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"strings"
	"testing"
)

// TestSignaturesOfCalls: a call of the current turn has to come back with its signature, one of an earlier turn need not.
func TestSignaturesOfCalls(t *testing.T) {
	const (
		user   = `{"role":"user","parts":[{"text":"Work."}]}`
		call   = `{"role":"model","parts":[{"functionCall":{"id":"a","name":"run_shell_command","args":{}}}]}`
		signed = `{"role":"model","parts":[{"functionCall":{"id":"a","name":"run_shell_command","args":{}},"thoughtSignature":"c2ln"}]}`
		result = `{"role":"user","parts":[{"functionResponse":{"id":"a","name":"run_shell_command","response":{"output":"x"}}}]}`
		done   = `{"role":"model","parts":[{"text":"Done."}]}`
	)
	for contents, want := range map[string]int{
		strings.Join([]string{user, call, result}, ","):             http.StatusBadRequest,
		strings.Join([]string{user, signed, result}, ","):           http.StatusOK,
		strings.Join([]string{user, call, result, done, user}, ","): http.StatusOK,
	} {
		if got, _ := ask(t, New(""), "/v1beta/models/m:generateContent", `{"contents":[`+contents+`]}`); got.Code != want {
			t.Errorf("%s: status %d, want %d: %s", contents, got.Code, want, got.Body)
		}
	}
}

// TestCommandsInResults: a client that quotes a command in its result has not called it twice. A script goes on behind a turn that waited.
func TestCommandsInResults(t *testing.T) {
	const script = "plain: true\nturns:\n- text: First.\n  run: one\n- until: now\n  while: look\n  text: Then.\n- text: Last."
	body := `{"model":"m","tools":[{"function":{"name":"bash"}}],"messages":[{"role":"user","content":` + prompt(script) + `},` +
		`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"bash","arguments":"{\"command\":\"one\"}"}}]},{"role":"tool","tool_call_id":"a","content":"Command: one"},` +
		`{"role":"assistant","tool_calls":[{"id":"b","function":{"name":"bash","arguments":"{\"command\":\"look # the script waits\",\"description\":\"x\"}"}}]},` +
		`{"role":"tool","tool_call_id":"b","content":"Command: look # the script waits\nOutput: now"}]}`
	if got, _ := ask(t, New(""), "/v1/chat/completions", body); !strings.Contains(got.Body.String(), `"Then."`) {
		t.Errorf("the script goes on with %s", got.Body)
	}
}

// TestNoCommentsForGemini: whatever is chosen, a stream of Gemini has no comments; its client fails at them.
func TestNoCommentsForGemini(t *testing.T) {
	for i := range 40 {
		body := `{"contents":[{"role":"user","parts":[{"text":` + prompt("turns: [{text: "+strings.Repeat("x", i+1)+"}]") + `}]}]}`
		if got, _ := ask(t, New(""), "/v1beta/models/m:streamGenerateContent?alt=sse", body); got.Code != http.StatusOK || strings.Contains(got.Body.String(), ": still") {
			t.Fatalf("status %d: %s", got.Code, got.Body)
		}
	}
}
