// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestBudgets: a call that may go over a budget is not made, and the refusal says what it wanted, so that the watchdog can ask
// when it may be made. One that only calls under way stand in the way of is refused for the moment.
func TestBudgets(t *testing.T) {
	asked := 0
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked++
		answering(rw, r)
	}), quick())
	request := `{"model":"large","max_tokens":1024,"messages":[{"role":"user","content":"` + strings.Repeat("x", 4000) + `"}]}`
	w.budgets = []ledger.Budget{{Scope: ledger.Feature, Key: "uid-of-login", Limit: ledger.Amount{Cost: 100_000}, Origins: map[ledger.Resource]string{ledger.Cost: "defaults of shop/limits"}}}
	call := func() (*http.Response, string) {
		t.Helper()
		return w.ask("login", "POST", "/anthropic/v1/messages", request)
	}
	if answer, text := call(); answer.StatusCode != http.StatusOK || asked != 1 {
		t.Fatalf("within the budget: %d %s", answer.StatusCode, text)
	}
	// 4,000 bytes and a little, 1,024 tokens that the answer may have, at 3 and 15 for a million.
	wanted := w.wanted[0]
	if wanted.Input < 1000 || wanted.Input > 1030 || wanted.Output != 1024 || wanted.Cost != 3*wanted.Input+15*1024 {
		t.Errorf("wanted %+v", wanted)
	}
	w.used = ledger.Amount{Input: 5000, Output: 2000, Cost: 90_000}
	answer, text := call()
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get(protocol.ReasonHeader) != "BudgetExceeded" || ledger.ParseAmount(answer.Header.Get(protocol.WantedHeader)) != wanted ||
		!strings.Contains(text, "raise budget.maxCost of the SupervisorPolicy (defaults of shop/limits)") || asked != 1 {
		t.Errorf("over the budget: %d %v %s, asked %d times", answer.StatusCode, answer.Header, text, asked)
	}
	w.used, w.reservedNow = ledger.Amount{}, ledger.Amount{Cost: 90_000}
	answer, text = call()
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get(protocol.ReasonHeader) != "BudgetReserved" || ledger.ParseAmount(answer.Header.Get(protocol.WantedHeader)) != wanted || !strings.Contains(text, "try again when they have ended") {
		t.Errorf("reserved: %d %v %s", answer.StatusCode, answer.Header, text)
	}
	if len(w.turns) != 1 {
		t.Errorf("%d turns were recorded: a call that was not made is none", len(w.turns))
	}
}

// TestAllowance: a watchdog is told what was used, which budget is nearly used, and whether a call may be made.
func TestAllowance(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(answering), quick())
	allowance := func(wanted ledger.Amount) protocol.Allowance {
		t.Helper()
		answer, text := w.ask("login", "GET", protocol.AllowancePath+"?"+url.Values{protocol.ParamWanted: {wanted.String()}}.Encode(), "")
		var a protocol.Allowance
		if err := json.Unmarshal([]byte(text), &a); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%d %s: %v", answer.StatusCode, text, err)
		}
		return a
	}
	w.used = ledger.Amount{Input: 700, Output: 30, Cost: 1_500_000}
	want := protocol.Allowance{Usage: protocol.Usage{InputTokens: 700, CachedInputTokens: 3, OutputTokens: 30, Cost: "1.50", Calls: 2}}
	if diff := cmp.Diff(want, allowance(ledger.Amount{Input: 1 << 40})); diff != "" {
		t.Errorf("without a budget (-want +got):\n%s", diff)
	}
	w.budgets = []ledger.Budget{{Scope: ledger.Feature, Key: "uid-of-login", Limit: ledger.Amount{Input: 1000}}, {Scope: ledger.Global, Limit: ledger.Amount{Cost: 1_600_000}}}
	want.Warning = "this month's global budget has 0.10 of 1.60 left"
	if diff := cmp.Diff(want, allowance(ledger.Amount{Input: 300, Cost: 100_000})); diff != "" {
		t.Errorf("just within (-want +got):\n%s", diff)
	}
	w.reservedNow = ledger.Amount{Input: 200} // which ends by itself
	want.Reserved = true
	if diff := cmp.Diff(want, allowance(ledger.Amount{Input: 300})); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
	want.Reserved = false
	want.Exceeded = "the budget of the Feature has 300 of 1000 input tokens left, and the next call may take 301; raise budget.maxInputTokens"
	if diff := cmp.Diff(want, allowance(ledger.Amount{Input: 301})); diff != "" {
		t.Errorf("over (-want +got):\n%s", diff)
	}
	w.budgets, w.reservedNow = nil, ledger.Amount{}
	w.used, w.own = ledger.Amount{Input: 900_000, Cost: 1_500_000}, ledger.Amount{Input: 10_000, Cost: 300_000}
	for percent, want := range map[int]string{0: "", 19: "Plans and reviews (the role supervisor) have 20 % of the cost", 20: ""} {
		w.costAlert = percent
		if got := allowance(ledger.Amount{}).SupervisorCost; (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("a limit of %d %%: %q, want %q", percent, got, want)
		}
	}
	if answer, _ := w.ask("stranger", "GET", protocol.AllowancePath, ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger: %d", answer.StatusCode)
	}
	w.reserving = errors.New("the disk is gone")
	if answer, text := w.ask("login", "GET", protocol.AllowancePath, ""); answer.StatusCode != http.StatusServiceUnavailable || strings.Contains(text, "disk") {
		t.Errorf("without a ledger: %d %s", answer.StatusCode, text)
	}
}

// TestWhatIsNotCountedIsCharged: a provider that counts nothing, and an answer that breaks off, make no call free.
func TestWhatIsNotCountedIsCharged(t *testing.T) {
	const words = "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}\n\n"
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, words, strings.Repeat("w", 4000))
		if r.Header.Get("Accept") == "whole" {
			fmt.Fprint(rw, "data: [DONE]\n\n")
		}
	}), quick())
	request := `{"model":"large","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("x", 4000) + `"}]}`
	for n, accept := range []string{"whole", "cut"} {
		w.ask("login", "POST", "/openai/v1/chat/completions", request, "Accept", accept)
		w.last(n + 1)
		if got := w.turns[n].Tokens; got.Input < 1000 || got.Input > 1050 || got.Output != 1000 || w.turns[n].Cost == 0 || !w.turns[n].Estimated {
			t.Errorf("%s: %+v, cost %d", accept, got, w.turns[n].Cost)
		}
		if r := w.last(n + 1); r.Estimated != 1 {
			t.Errorf("%s: %d tries are estimated", accept, r.Estimated)
		}
	}
}

// TestAHalfCountIsCharged: a usage that leaves out the request, or the answer, is completed by an estimate.
func TestAHalfCountIsCharged(t *testing.T) {
	usage := ""
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(rw, `{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}],"usage":%s}`, strings.Repeat("w", 4000), usage)
	}), quick())
	request := `{"model":"large","messages":[{"role":"user","content":"` + strings.Repeat("x", 4000) + `"}]}`
	for n, tc := range []struct {
		usage     string
		estimated bool
		input     int64
		output    int64
	}{
		{`{"prompt_tokens":7,"completion_tokens":5}`, false, 7, 5},
		{`{"prompt_tokens":7}`, true, 7, 1000},
		{`{"completion_tokens":2000}`, true, 1000, 2000},
		{`null`, true, 1000, 1000},
	} {
		usage = tc.usage
		w.ask("login", "POST", "/openai/v1/chat/completions", request)
		w.last(n + 1)
		got := w.recorded()[n]
		near := func(got, want int64) bool { return got >= want && got <= want+want/20 }
		if got.Estimated != tc.estimated || !near(got.Tokens.Input, tc.input) || !near(got.Tokens.Output, tc.output) {
			t.Errorf("%s: %+v, estimated %v", tc.usage, got.Tokens, got.Estimated)
		}
	}
}

// TestEveryKindIsCharged by its own price: writes into the cache, searches, and long requests.
func TestEveryKindIsCharged(t *testing.T) {
	usage := ""
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(rw, `{"type":"message","model":"large","content":[],"stop_reason":"end_turn","usage":%s}`, usage)
	}), quick())
	for n, tc := range []struct {
		usage string
		cost  int64
	}{
		{`{"input_tokens":1000,"cache_creation_input_tokens":3000,"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000},"output_tokens":100}`, 3000 + 3750 + 12_000 + 1500},
		{`{"input_tokens":1000,"output_tokens":100,"server_tool_use":{"web_search_requests":2}}`, 3000 + 1500 + 20_000},
		{`{"input_tokens":1,"cache_read_input_tokens":200000,"output_tokens":100}`, 6 + 120_000 + 2250},
	} {
		usage = tc.usage
		w.ask("priced", "POST", "/anthropic/v1/messages", `{"model":"priced","messages":[]}`)
		w.last(n + 1)
		if got := w.recorded()[n]; got.Cost != tc.cost || got.Estimated {
			t.Errorf("%s: cost %d, want %d, estimated %v", tc.usage, got.Cost, tc.cost, got.Estimated)
		}
	}
}

// TestACostWithoutPrices: where a budget limits the cost, a model whose cost nobody knows is not asked.
func TestACostWithoutPrices(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(answering), quick())
	w.budgets = []ledger.Budget{{Scope: ledger.Feature, Key: "uid-of-login", Limit: ledger.Amount{Cost: 1}, Origins: map[ledger.Resource]string{ledger.Cost: "defaults of shop/limits"}}}
	answer, text := w.ask("mapped", "POST", "/anthropic/v1/messages", `{"model":"tiny","messages":[]}`)
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get(protocol.ReasonHeader) != "ModelNotAvailable" || !strings.Contains(text, "defaults of shop/limits") || !strings.Contains(text, "has no prices") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}
