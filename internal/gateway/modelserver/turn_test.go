// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// answers of a backend, with all that a turn needs.
const (
	wholeAnswer = `{"type":"message","model":"large-7","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":1000,"cache_read_input_tokens":10,"output_tokens":100}}`
	streamStart = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"large-7\",\"usage\":{\"input_tokens\":1000,\"cache_read_input_tokens\":10}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Done.\"}}\n\n"
	streamEnd = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":100}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// answering is a backend that gives these answers, the stream in pieces.
func answering(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "count_tokens") {
		fmt.Fprint(w, `{"input_tokens":7}`)
		return
	}
	if r.Header.Get("X-App") == "refuse" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`)
		return
	}
	if r.Header.Get("Accept") != "text/event-stream" {
		w.Header().Set("Content-Type", "application/json")
		for _, half := range []string{wholeAnswer[:40], wholeAnswer[40:]} {
			fmt.Fprint(w, half)
			_ = http.NewResponseController(w).Flush()
		}
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, part := range []string{streamStart, streamEnd} {
		fmt.Fprint(w, part)
		_ = http.NewResponseController(w).Flush()
	}
}

// TestTurnsAreRecorded: what was asked and answered, by whom, with what was used, also where the provider refuses.
func TestTurnsAreRecorded(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(answering), quick())
	request := `{"model":"large","messages":[]}`
	digest := sha256.Sum256([]byte(request))
	want := ledger.Interaction{
		FeatureUID: "uid-of-login", Namespace: "shop", Feature: "login", Attempt: 2, Task: "form", Dialect: "anthropic", Backend: "main",
		ModelAsked: "large", Model: "large-7", Role: "primary", RequestDigest: hex.EncodeToString(digest[:]), RequestBytes: int64(len(request)),
		AnswerBytes: int64(len(wholeAnswer)), Raw: []byte(wholeAnswer), Tokens: ledger.Tokens{Input: 1000, Output: 100, Cached: 10},
		Cost: 3000 + 1500 + 3, Status: 200, Reason: "Answered",
	}
	last := func() ledger.Interaction {
		t.Helper()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.turns) != 1 {
			t.Fatalf("%d turns were recorded, want 1", len(w.turns))
		}
		turn := w.turns[0]
		w.turns = nil
		if turn.ID == "" || turn.At.IsZero() || turn.FirstByte <= 0 || turn.Duration < turn.FirstByte {
			t.Errorf("%+v", turn)
		}
		return turn
	}
	untold := cmpopts.IgnoreFields(ledger.Interaction{}, "ID", "At", "FirstByte", "Duration")
	if _, text := w.ask("login", "POST", "/anthropic/v1/messages", request); text != wholeAnswer {
		t.Errorf("the agent got %s", text)
	}
	w.last(1)
	if diff := cmp.Diff(want, last(), untold); diff != "" {
		t.Errorf("whole (-want +got):\n%s", diff)
	}
	if _, text := w.ask("login", "POST", "/anthropic/v1/messages", request, "Accept", "text/event-stream"); text != streamStart+streamEnd {
		t.Errorf("the agent got %s", text)
	}
	w.last(2)
	want.Raw, want.AnswerBytes = []byte(streamStart+streamEnd), int64(len(streamStart+streamEnd))
	if diff := cmp.Diff(want, last(), untold); diff != "" {
		t.Errorf("streamed (-want +got):\n%s", diff)
	}
	w.ask("login", "POST", "/anthropic/v1/messages", request, "X-App", "refuse")
	w.last(3)
	if got := last(); got.Status != http.StatusBadRequest || !strings.Contains(string(got.Raw), "invalid_request_error") || got.Cost != 0 {
		t.Errorf("refused: %+v", got)
	}
	// To count tokens is no turn.
	w.ask("login", "POST", "/anthropic/v1/messages/count_tokens", request)
	if w.last(4); len(w.turns) != 0 {
		t.Errorf("a count was recorded: %+v", w.turns)
	}
}

// TestProviderToolsAreCharged: what a provider's tools have done is in the turn, and costs what the backend's prices say.
func TestProviderToolsAreCharged(t *testing.T) {
	const answer = `{"type":"message","model":"priced","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"server_tool_use","id":"c","name":"bash_code_execution","input":{}},{"type":"text","text":"Done."}],` +
		`"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":100,"server_tool_use":{"web_search_requests":2,"web_fetch_requests":1}}}`
	w := newWorld(t, saying("application/json", answer), quick())
	if answer, text := w.ask("researching", http.MethodPost, messages, `{"model":"m","tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"code_execution_20250825","name":"code_execution"}],"messages":[]}`); answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	r := w.last(1)
	turn := w.recorded()[0]
	want := ledger.Tokens{Input: 1000, Output: 100, Uses: ledger.Uses{Searches: 2, Fetches: 1, Executions: 1}}
	if diff := cmp.Diff(want, turn.Tokens); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if cost := int64(3000 + 1500 + 2*10_000 + 50_000); turn.Cost != cost || r.Cost != cost {
		t.Errorf("it costs %d, observed were %d, want %d", turn.Cost, r.Cost, cost)
	}
}

// TestNoEndWithoutARecord: an agent never sees the end of an answer that could not be recorded, and nothing is asked while
// the ledger is away, unless the policy says otherwise.
func TestNoEndWithoutARecord(t *testing.T) {
	asked := 0
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked++
		answering(rw, r)
	}), quick())
	const request = `{"model":"large","messages":[]}`
	w.settling = errors.New("the disk is full")
	// What the connection gave in one piece with the end is kept back with it.
	_, text := w.ask("login", "POST", "/anthropic/v1/messages", request, "Accept", "text/event-stream")
	if before, after, found := strings.Cut(text, "\n\nevent: error\n"); !found || !strings.HasPrefix(streamStart, before) || !strings.Contains(after, "cannot write its ledger") {
		t.Errorf("streamed: the agent got %s", text)
	}
	if r := w.last(1); r.Reason != "LedgerUnavailable" {
		t.Errorf("streamed: %s", r.Reason)
	}
	if _, text := w.ask("login", "POST", "/anthropic/v1/messages", request); strings.Contains(text, "output_tokens") || !strings.Contains(text, "unexpected EOF") {
		t.Errorf("whole: the agent got %s", text)
	}
	if _, text := w.ask("unrecorded", "POST", "/anthropic/v1/messages", request); text != wholeAnswer {
		t.Errorf("where the policy lets it through: %s", text)
	}
	w.last(3)
	w.reserving, asked = errors.New("nobody is there"), 0
	if answer, text := w.ask("login", "POST", "/anthropic/v1/messages", request); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "ledger.failurePolicy") || asked != 0 {
		t.Errorf("without a ledger: %d %s, asked %d times", answer.StatusCode, text, asked)
	}
	if answer, _ := w.ask("unpinned", "POST", "/anthropic/v1/messages", request); answer.Header.Get(protocol.ReasonHeader) != "LedgerUnavailable" {
		t.Errorf("a task without terms: %d %s", answer.StatusCode, answer.Header.Get(protocol.ReasonHeader))
	}
	if _, text := w.ask("unrecorded", "POST", "/anthropic/v1/messages", request); text != wholeAnswer || asked != 1 {
		t.Errorf("where the policy lets it through: %s", text)
	}
}

// TestABrokenTurnIsRecorded: as far as it came, also when the agent hangs up.
func TestABrokenTurnIsRecorded(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, streamStart)
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}), quick())
	w.ask("login", "POST", "/anthropic/v1/messages", `{"model":"large"}`)
	w.last(1)
	for range 200 {
		w.mu.Lock()
		n := len(w.turns)
		w.mu.Unlock()
		if n > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.turns) != 1 || w.turns[0].Reason != "AnswerCutOff" || string(w.turns[0].Raw) != streamStart || w.turns[0].Tokens.Input != 1000 {
		t.Errorf("%+v", w.turns)
	}
}

// TestRefusalsAreRecorded: a call that the gateway refuses before a backend is asked is given to the ledger with its reason, one that has a
// turn is not, and one of whom nobody knows who asks is not either.
func TestRefusalsAreRecorded(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(answering), quick())
	w.budgets = []ledger.Budget{{Scope: ledger.Feature, Key: "uid-of-login", Limit: ledger.Amount{Output: 2000}}}
	const request = `{"model":"large","messages":[]}`
	w.ask("login", "POST", "/anthropic/v1/messages", request, "Anthropic-Beta", "refuse") // has a turn
	w.ask("login", "POST", "/anthropic/v1/messages", `{"model"`)
	w.ask("stranger", "POST", "/anthropic/v1/messages", request)
	w.last(3)
	w.mu.Lock()
	w.used.Output = 2000
	w.mu.Unlock()
	w.ask("login", "POST", "/anthropic/v1/messages", request)
	w.last(4)
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []string
	for _, i := range w.refused {
		got = append(got, fmt.Sprint(i.Reason, " ", i.Status, " ", i.FeatureUID, " ", i.Namespace, "/", i.Feature, " ", i.Task))
	}
	want := []string{"InvalidRequest 400 uid-of-login shop/login form", "BudgetExceeded 503 uid-of-login shop/login form"}
	if diff := cmp.Diff(want, got); diff != "" || len(w.turns) != 1 {
		t.Errorf("%d turns (-want +got):\n%s", len(w.turns), diff)
	}
}
