// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// TestACallThatIsGivenUpIsCharged: a provider that has the request works on it and bills it, whether somebody waits for the answer or not. What the agent
// gives up, and what the gateway gives up because the backend is silent, is charged by an estimate: its request, and an answer that would have come in one
// piece by the time that the provider had for it. A call that no provider got, and one that the provider itself broke off, is free.
func TestACallThatIsGivenUpIsCharged(t *testing.T) {
	const request = `{"model":"large","max_tokens":20,"messages":[{"role":"user","content":"Hello, hello, hello."}]}`
	streamed := strings.Replace(request, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)
	for name, tc := range map[string]struct {
		request string
		hangsUp bool
		breaks  bool
		reason  string
		want    ledger.Tokens
	}{
		"the agent hangs up":                {request, true, false, "CallerGone", ledger.Tokens{Input: int64(len(request)) / 4, Output: 20}},
		"the agent hangs up, streamed":      {streamed, true, false, "CallerGone", ledger.Tokens{Input: int64(len(streamed)) / 4}},
		"the backend is silent, streamed":   {streamed, false, false, "BackendSilent", ledger.Tokens{Input: int64(len(streamed)) / 4}},
		"the backend breaks the connection": {request, false, true, "BackendUnreachable", ledger.Tokens{}},
	} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan bool, 3)
			w := newWorld(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				arrived <- true
				if tc.breaks {
					panic(http.ErrAbortHandler)
				}
				<-r.Context().Done()
			}), quick())
			if tc.reason == "BackendSilent" {
				w.silence = 300 * time.Millisecond
			}
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.URL+messages, strings.NewReader(tc.request))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer login")
			if tc.hangsUp {
				go func() {
					<-arrived
					time.Sleep(250 * time.Millisecond) // a model writes some 25 tokens in that time
					hangUp()
				}()
			}
			if answer, err := http.DefaultTransport.RoundTrip(r); err == nil {
				_ = answer.Body.Close()
			}
			got := w.last(1)
			if tc.want.Output > 0 { // a busy machine takes longer to hang up, and is charged for it
				tc.want.Output = max(tc.want.Output, got.Tokens.Output)
			}
			if got.Reason != tc.reason || got.Tokens != tc.want {
				t.Errorf("observed %+v, want %+v", got, tc.want)
			}
			if turns := w.recorded(); len(turns) != 1 || turns[0].Tokens != tc.want || turns[0].Estimated != (tc.want != ledger.Tokens{}) || turns[0].Cost != 3*tc.want.Input+15*tc.want.Output {
				t.Errorf("recorded %+v", turns)
			}
		})
	}
}
