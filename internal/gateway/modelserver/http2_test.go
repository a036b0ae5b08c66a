// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestAProviderThatGoesAway: a server of HTTP/2 that is about to end says GOAWAY (RFC 9113, section 6.8). The answer under way comes to its end, the next
// call is made on a new connection, and each is made once.
func TestAProviderThatGoesAway(t *testing.T) {
	var asked atomic.Int64
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		rw.Header().Set("Connection", "close") // which the server says by GOAWAY
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, part := range []string{streamStart, streamEnd} {
			fmt.Fprint(rw, part)
			_ = http.NewResponseController(rw).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}), quick())
	for n := range 3 {
		if answer, text := w.ask("login", http.MethodPost, messages, streamedRequest); answer.StatusCode != http.StatusOK || text != streamStart+streamEnd {
			t.Fatalf("call %d: %d %s", n, answer.StatusCode, text)
		}
		if r := w.last(n + 1); r.Tries != 1 {
			t.Errorf("call %d: %d tries", n, r.Tries)
		}
	}
	if asked.Load() != 3 || w.backend.Accepted() != 3 {
		t.Errorf("asked %d times on %d connections", asked.Load(), w.backend.Accepted())
	}
}

// TestOneStreamAtOnce: a provider that takes one call at once on a connection gets another connection for another call, so that nobody waits for the answer
// of somebody else.
func TestOneStreamAtOnce(t *testing.T) {
	var under, most, asked atomic.Int64
	gate := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		n := under.Add(1)
		defer under.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if strings.Contains(r.URL.RawQuery, "beta") {
			<-gate
		}
		answering(rw, r)
	}), quick())
	w.backend.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1} // of connections from now on
	var calls sync.WaitGroup
	calls.Go(func() { w.ask("a", http.MethodPost, messages+"?beta=true", plainRequest) })
	for under.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for n := range 3 {
		if answer, text := w.ask("b", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusOK || text != wholeAnswer {
			t.Errorf("call %d: %d %s", n, answer.StatusCode, text)
		}
	}
	close(gate)
	calls.Wait()
	if asked.Load() != 4 || most.Load() != 2 || w.backend.Accepted() < 2 {
		t.Errorf("asked %d times, %d at once, on %d connections", asked.Load(), most.Load(), w.backend.Accepted())
	}
	w.last(4)
	for _, r := range w.records {
		if r.Tries != 1 {
			t.Errorf("%+v", r)
		}
	}
}
