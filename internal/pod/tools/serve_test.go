// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestServerHasABoundForEverything: a client that neither sends nor reads keeps no connection for ever.
func TestServerHasABoundForEverything(t *testing.T) {
	s := newServer(t.Context(), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("no bound: %+v", s)
	}
	if s.WriteTimeout <= longestWait {
		t.Errorf("write timeout = %v, want more than the longest question takes (%v)", s.WriteTimeout, longestWait)
	}
}

// TestLargeBodies sends more of them at once than are let in, and small ones meanwhile.
func TestLargeBodies(t *testing.T) {
	var inside, most atomic.Int64
	proceed := make(chan struct{})
	h := fewLarge(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			return
		}
		n := inside.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-proceed
		_, _ = io.Copy(io.Discard, r.Body)
		inside.Add(-1)
	}))
	send := func(path string, body io.Reader) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body))
		return w.Code
	}
	var sent sync.WaitGroup
	for range 10 {
		sent.Go(func() { send("/large", strings.NewReader(strings.Repeat("x", smallBody+1))) })
		sent.Go(func() { send("/large", struct{ io.Reader }{strings.NewReader("of no known length")}) })
	}
	for inside.Load() < maxLargeBodies { // as many as there is room for
		runtime.Gosched()
	}
	for range 20 {
		if code := send("/small", strings.NewReader(strings.Repeat("x", smallBody))); code != http.StatusOK {
			t.Errorf("a small one: %d", code)
		}
	}
	close(proceed)
	sent.Wait()
	if most.Load() != maxLargeBodies {
		t.Errorf("%d large bodies at once, want %d", most.Load(), maxLargeBodies)
	}
}
