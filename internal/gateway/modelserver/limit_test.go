// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// TestBudgetsLimitAnswers: where a budget has room for a part of what the answer may have, the provider is asked for no more than that part, the ledger
// says so, and the answer stays within the budget.
func TestBudgetsLimitAnswers(t *testing.T) {
	const left = 5000
	tried := map[string]bool{}
	for name, tc := range map[string]struct{ path, members, want string }{
		"anthropic":             {messages, `"max_tokens":32000`, `"max_tokens":5000`},
		"anthropic, thinking":   {messages, `"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":3000}`, `"max_tokens":5000`},
		"responses":             {"/openai/v1/responses", `"max_output_tokens":32000`, `"max_output_tokens":5000`},
		"responses, unlimited":  {"/openai/v1/responses", `"top_p":1`, `"max_output_tokens":5000`},
		"chat":                  {"/openai/v1/chat/completions", `"max_completion_tokens":32000`, `"max_tokens":5000`},
		"chat, unlimited":       {"/openai/v1/chat/completions", `"top_p":1`, `"max_tokens":5000`},
		"chat, several choices": {"/openai/v1/chat/completions", `"n":2`, `"max_tokens":2500`},
		"gemini":                {"/gemini/v1beta/models/m:generateContent", `"generationConfig":{"temperature":1}`, `"maxOutputTokens":5000`},
	} {
		d, _, _, _ := dialect.Serve(http.MethodPost, tc.path)
		tried[d.Name] = true
		t.Run(name, func(t *testing.T) {
			p := provider.New(providerKey)
			w := newWorld(t, p, quick())
			w.budgets = []ledger.Budget{{Scope: ledger.Feature, Key: "uid-of-login", Limit: ledger.Amount{Output: 100_000, Cost: 2_000_000}}, {Scope: ledger.Global, Limit: ledger.Amount{Output: 100_000}}}
			w.used = ledger.Amount{Output: 100_000 - left}
			body := `{"model":"m",` + tc.members + `,"messages":[{"role":"user","content":"Hello"}]}`
			switch {
			case strings.Contains(tc.path, "responses"):
				body = strings.Replace(body, `"messages":[{"role":"user","content":"Hello"}]`, `"input":"Hello"`, 1)
			case strings.Contains(tc.path, "gemini"):
				body = strings.Replace(body, `"messages":[{"role":"user","content":"Hello"}]`, `"contents":[{"role":"user","parts":[{"text":"Hello"}]}]`, 1)
			}
			answer, text := w.ask("login", http.MethodPost, tc.path, body)
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", answer.StatusCode, text)
			}
			if got := p.Recorded()[0].Body; !strings.Contains(got, tc.want) || strings.Contains(got, "32000") {
				t.Errorf("the provider got %s", got)
			}
			w.last(1)
			if turn := w.recorded()[0]; !strings.Contains(turn.Detail, "a budget limits the answer to ") {
				t.Errorf("%+v", turn)
			}
			if last := w.wanted[len(w.wanted)-1]; last.Output != left {
				t.Errorf("reserved were %+v, of %d tokens that are left", last, left)
			}
		})
	}
	wantEveryDialect(t, tried)
}

// TestBudgetsThatLimitTooMuch: a call is refused where what is left is too little for a thought and a call of a tool.
func TestBudgetsThatLimitTooMuch(t *testing.T) {
	for name, tc := range map[string]struct {
		members string
		left    int64
		wanted  int64
	}{
		"little is left":              {`"max_tokens":32000`, ledger.LeastOutput - 1, ledger.LeastOutput},
		"too little to think":         {`"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":3000}`, 3000 + ledger.LeastOutput - 1, 3000 + ledger.LeastOutput},
		"nothing is left":             {`"max_tokens":32000`, 0, ledger.LeastOutput},
		"little was asked for at all": {`"max_tokens":50`, 49, 50},
	} {
		t.Run(name, func(t *testing.T) {
			p := provider.New(providerKey)
			w := newWorld(t, p, quick())
			w.budgets = []ledger.Budget{{Scope: ledger.Feature, Key: "uid-of-login", Limit: ledger.Amount{Output: 100_000}}}
			w.used = ledger.Amount{Output: 100_000 - tc.left}
			body := `{"model":"m",` + tc.members + `,"messages":[{"role":"user","content":"Hello"}]}`
			answer, text := w.ask("login", http.MethodPost, messages, body)
			if answer.Header.Get(protocol.ReasonHeader) != "BudgetExceeded" || len(p.Recorded()) > 0 {
				t.Errorf("%d %v %s", answer.StatusCode, answer.Header, text)
			}
			if last := w.wanted[len(w.wanted)-1]; last.Output != tc.wanted || len(w.wanted) > 2 {
				t.Errorf("wanted were %+v", w.wanted)
			}
			w.mu.Lock()
			w.used.Output = 100_000 - tc.wanted
			w.mu.Unlock()
			if answer, text := w.ask("login", http.MethodPost, messages, body); answer.StatusCode != http.StatusOK {
				t.Errorf("with enough: %d %s", answer.StatusCode, text)
			}
		})
	}
}

// TestReservedOutput is what the request asks for, and no more than the model has.
func TestReservedOutput(t *testing.T) {
	p := provider.New(providerKey)
	w := newWorld(t, p, quick())
	for name, tc := range map[string]struct {
		feature, member string
		want            int64
	}{
		"asked for":                       {"login", `"max_tokens":700`, 700},
		"more than the model has":         {"priced", `"max_tokens":64000`, 8000},
		"nothing, of a known model":       {"priced", `"top_p":1`, 8000},
		"nothing, of an unknown model":    {"login", `"top_p":1`, 32_000},
		"a limit that nobody may read":    {"login", `"max_completion_tokens":1`, 32_000},
		"several answers of a full limit": {"priced", `"n":2`, 16_000},
		"more thoughts than the answer":   {"login", `"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":20000}`, 20_009},
		"more thoughts than the model":    {"priced", `"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":20000}`, 8000},
		"thoughts within the answer":      {"login", `"max_tokens":700,"thinking":{"type":"enabled","budget_tokens":600}`, 700},
	} {
		w.mu.Lock()
		w.wanted = nil
		w.mu.Unlock()
		path := "/openai/v1/chat/completions"
		if strings.Contains(tc.member, "thinking") {
			path = messages
		}
		answer, text := w.ask(tc.feature, http.MethodPost, path, `{"model":"m",`+tc.member+`,"messages":[{"role":"user","content":"Hello"}]}`)
		refused := strings.Contains(text, "must be greater than") // by the scripted provider, which knows no interleaved thinking
		if answer.StatusCode != http.StatusOK && !refused || len(w.wanted) != 1 || w.wanted[0].Output != tc.want {
			t.Errorf("%s: %d %s, wanted %+v", name, answer.StatusCode, text, w.wanted)
		}
	}
	for _, r := range p.Recorded() {
		if strings.Contains(r.Body, "8000") || strings.Contains(r.Body, "32000") {
			t.Errorf("without a budget the provider got %s", r.Body)
		}
	}
}
