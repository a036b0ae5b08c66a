// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// TestRateOfCalls: a Feature makes the calls of a minute, whatever becomes of them, and no more; the next one may be made when the answer says, in
// every dialect. Other Features are not held up, and the ledger has what was refused.
func TestRateOfCalls(t *testing.T) {
	p := provider.New(providerKey)
	w := newWorld(t, p, roomy())
	w.rate = map[string]coremodels.Rate{"hurried": {PerMinute: 4, Origin: "defaults of shop/limits"}}
	good := scripted(false, "large", "turns: [{text: a}]")
	for n, call := range []struct {
		path, body string
		status     int
	}{
		{messages, good, http.StatusOK},
		{messages + "/count_tokens", good, http.StatusOK},
		{messages, "{}", http.StatusBadRequest},
		{messages + "/batches", good, http.StatusNotFound},
	} {
		if answer, text := w.ask("hurried", http.MethodPost, call.path, call.body); answer.StatusCode != call.status {
			t.Errorf("call %d: %d %s", n+1, answer.StatusCode, text)
		}
	}
	asked, tried := len(p.Recorded()), map[string]bool{}
	shapes := map[string]string{
		messages: `{"type":"error","error":{"type":"rate_limit_error","message":"`, messages + "/count_tokens": `{"type":"error","error":{"type":"rate_limit_error"`,
		"/openai/v1/responses": `{"error":{"message":"`, "/openai/v1/chat/completions": `{"error":{"message":"`, "/gemini/v1beta/models/large:generateContent": `{"error":{"code":429,`,
	}
	for path, shape := range shapes {
		d, _, _, _ := dialect.Serve(http.MethodPost, path)
		tried[d.Name] = true
		answer, text := w.ask("hurried", http.MethodPost, path, good)
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get(protocol.ReasonHeader) != "CallRateExceeded" || answer.Header.Get("Retry-After") != "15" || !strings.HasPrefix(text, shape) ||
			!strings.Contains(text, "raise budget.callsPerMinute of the SupervisorPolicy (defaults of shop/limits)") {
			t.Errorf("%s: %d %v\n%s", path, answer.StatusCode, answer.Header, text)
		}
	}
	wantEveryDialect(t, tried)
	if answer, text := w.ask("login", http.MethodPost, messages, good); answer.StatusCode != http.StatusOK || len(p.Recorded()) != asked+1 {
		t.Errorf("another Feature: %d %s; the provider was asked %d times", answer.StatusCode, text, len(p.Recorded())-asked)
	}
	w.skipped.Add(int64(15 * time.Second))
	for n, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if answer, text := w.ask("hurried", http.MethodPost, messages, good); answer.StatusCode != want {
			t.Errorf("call %d after the pause: %d %s", n+1, answer.StatusCode, text)
		}
	}
	w.rate["hurried"] = coremodels.Rate{PerMinute: 600}
	w.ask("hurried", http.MethodPost, messages, good) // from now on
	w.skipped.Add(int64(time.Second))
	for n := range 10 {
		if answer, text := w.ask("hurried", http.MethodPost, messages, good); answer.StatusCode != http.StatusOK {
			t.Errorf("call %d of a raised rate: %d %s", n+1, answer.StatusCode, text)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	refused := map[string]int{}
	for _, i := range w.refused {
		refused[i.Reason]++
		if i.Reason == "CallRateExceeded" && (i.FeatureUID != "uid-of-hurried" || i.Status != http.StatusTooManyRequests || !i.Folds() || i.Backend != "" || i.Detail != "") {
			t.Errorf("the ledger got %+v", i)
		}
	}
	if refused["CallRateExceeded"] != len(shapes)+2 || len(w.avoided) > 0 {
		t.Errorf("refused %v, avoided backends %v", refused, w.avoided)
	}
}
