// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
)

// streamedRequest is for an answer that a backend may be silent before for as long as the policy says.
const streamedRequest = `{"model":"large","stream":true,"messages":[]}`

// TestAConnectionThatANATForgot is asked for a sign of life, and the call is made again on a new one: the agent sees its answer.
func TestAConnectionThatANATForgot(t *testing.T) {
	// A pong that takes five seconds is a connection's end: on a busy machine, that of one which is alive takes longer than 20 ms.
	w := newWorldBehind(t, http.HandlerFunc(answering), quick(), backends.Options{Ping: 20 * time.Millisecond, Pong: 5 * time.Second})
	for n := range 2 {
		if answer, text := w.ask("login", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusOK || text != wholeAnswer {
			t.Fatalf("call %d: %d %s", n, answer.StatusCode, text)
		}
		w.backend.Forget()
	}
	if n := w.backend.Accepted(); n != 2 {
		t.Errorf("%d connections, want a new one after the first was forgotten", n)
	}
}

// TestSilenceIsFollowedByANewConnection: where a backend has not answered, the next call does not rely on the connection that the silent one
// was made on, although that one may be alive, and although others still wait on it.
func TestSilenceIsFollowedByANewConnection(t *testing.T) {
	waits := make(chan bool)
	w := newWorldBehind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("beta") {
			close(waits)
			<-r.Context().Done()
			return
		}
		answering(w, r)
	}), quick(), backends.Options{Ping: time.Hour, Pong: time.Hour})
	ask := func(status int) {
		t.Helper()
		if answer, text := w.ask("login", http.MethodPost, messages, streamedRequest); answer.StatusCode != status {
			t.Fatalf("%d %s, want %d", answer.StatusCode, text, status)
		} else if reason := answer.Header.Get(protocol.ReasonHeader); status != http.StatusOK && reason != "BackendSilent" {
			t.Errorf("the reason is %q", reason)
		}
	}
	ask(http.StatusOK)
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan bool)
	go func() {
		defer close(gone)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.URL+messages+"?beta=1", strings.NewReader(streamedRequest))
		if err != nil {
			panic(err) // every part of it is a constant
		}
		request.Header.Set("Authorization", "Bearer patient")
		if answer, err := http.DefaultTransport.RoundTrip(request); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-waits
	w.backend.Forget()
	w.silence = 200 * time.Millisecond
	ask(http.StatusGatewayTimeout)
	w.silence = time.Minute
	ask(http.StatusOK)
	if n := w.backend.Accepted(); n != 2 {
		t.Errorf("%d connections, want a new one after the silent call", n)
	}
	hangUp()
	<-gone
}

// TestALimitThatClientsCannotRead: Azure says by x-ratelimit-reset-tokens alone when to try again (https://github.com/openai/openai-python/issues/937), and no
// official client reads that. Where it is too long to be waited for at the gateway, the agent is told by Retry-After.
func TestALimitThatClientsCannotRead(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "0")
		w.Header().Set("X-Ratelimit-Reset-Tokens", "54.5")
		w.WriteHeader(http.StatusTooManyRequests)
	}), quick())
	answer, _ := w.ask("login", http.MethodPost, "/openai/v1/chat/completions", plainRequest)
	if r := w.last(1); r.Tries != 1 || answer.Header.Get("Retry-After") != "55" {
		t.Errorf("%d tries, %v", r.Tries, answer.Header)
	}
}

// TestWhatAProviderSaysOfItsLimits reaches the agent, and is obeyed.
func TestWhatAProviderSaysOfItsLimits(t *testing.T) {
	said := map[string]string{
		"Retry-After-Ms": "20", "X-Should-Retry": "false", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1s",
		"Anthropic-Ratelimit-Tokens-Reset": "2026-01-02T03:04:25Z",
	}
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range said {
			w.Header().Set(name, value)
		}
		w.Header().Set("X-Ratelimits", "no such header")
		w.WriteHeader(http.StatusTooManyRequests)
	}), quick())
	answer, _ := w.ask("login", http.MethodPost, "/openai/v1/chat/completions", plainRequest)
	for name, value := range said {
		if got := answer.Header.Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if r := w.last(1); answer.StatusCode != http.StatusTooManyRequests || r.Tries != 1 || answer.Header.Get("X-Ratelimits") != "" {
		t.Errorf("%d after %d tries, %v", answer.StatusCode, r.Tries, answer.Header)
	}
}
