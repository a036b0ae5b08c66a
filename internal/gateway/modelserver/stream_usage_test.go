// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// TestStreamsAreCounted: the gateway asks for the count of a stream's tokens, the ledger has it, and the agent does not get what it has not asked
// for. Where the agent asks itself, it gets all.
func TestStreamsAreCounted(t *testing.T) {
	const options = `"stream_options":{"include_usage":true},`
	for name, tc := range map[string]struct {
		rules  answers.Rules
		script string
	}{
		"an answer":          {script: "turns: [{text: Done.}]"},
		"a call of a tool":   {script: "turns: [{text: I look, run: ls}]"},
		"a checked answer":   {rules: report, script: `turns: [{text: "## Summary\nDone."}]`},
		"an answer released": {rules: report, script: "turns: [{text: I look, run: ls}]"},
		"a corrected answer": {rules: report, script: `turns: [{text: Well.}, {text: "## Summary\nBetter."}]`},
	} {
		t.Run(name, func(t *testing.T) {
			p := provider.New(providerKey)
			w := newWorld(t, p, quick())
			w.answers = tc.rules
			request := spoken(true, tc.script)["openai-chat"]
			asking := request[1]
			silent := strings.Replace(asking, options, "", 1)
			_, with := w.ask("login", http.MethodPost, request[0], asking)
			first := len(p.Recorded())
			_, without := w.ask("login", http.MethodPost, request[0], silent)
			if !strings.Contains(with, `"choices":[]`) || strings.Contains(without, `"prompt_tokens"`) || !strings.HasSuffix(without, "data: [DONE]\n\n") {
				t.Errorf("with: %s\nwithout: %s", with, without)
			}
			if a, b := understood(t, "openai-chat", with, true), understood(t, "openai-chat", without, true); string(a.Text) != string(b.Text) || len(a.Tools) != len(b.Tools) || !b.Ended {
				t.Errorf("with: %+v\nwithout: %+v", a, b)
			}
			if got := p.Recorded(); !strings.HasPrefix(got[first].Body, "{"+options) {
				t.Errorf("the provider got %s", got[first].Body)
			}
			w.last(2)
			for _, turn := range w.recorded() {
				if turn.Estimated || turn.Tokens.Output == 0 || !strings.Contains(string(turn.Raw), `"prompt_tokens"`) {
					t.Errorf("%+v\n%s", turn, turn.Raw)
				}
			}
		})
	}
}

// TestStreamsOfAKnownLength come without the count, and with no length that is wrong.
func TestStreamsOfAKnownLength(t *testing.T) {
	const (
		words = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n"
		count = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n"
		done  = "data: [DONE]\n\n"
	)
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Length", fmt.Sprint(len(words+count+done)))
		fmt.Fprint(w, words+count+done)
	}), quick())
	answer, text := w.ask("login", http.MethodPost, "/openai/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Hello"}]}`)
	if text != words+done || answer.ContentLength >= 0 {
		t.Errorf("%d bytes are announced: %s", answer.ContentLength, text)
	}
	if w.last(1); w.recorded()[0].Tokens.Output != 1 {
		t.Errorf("%+v", w.recorded()[0])
	}
}
