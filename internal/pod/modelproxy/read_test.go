// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const chat = "/openai/v1/chat/completions"

// sized is a valid request of so many bytes.
func sized(n int) string {
	const head, tail = `{"model":"m","messages":["`, `"]}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

// refused is what an agent is told in Chat Completions.
func refused(t *testing.T, answer *http.Response) (reason, message string) {
	t.Helper()
	var told struct {
		Error struct{ Message string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
		t.Errorf("the answer is not in the dialect's form: %v", err)
	}
	return answer.Header.Get(protocol.ReasonHeader), told.Error.Message
}

// TestRequestsThatCannotBeHeard do not reach the gateway, which would give them to a model that nobody supervises.
func TestRequestsThatCannotBeHeard(t *testing.T) {
	var reached atomic.Int64
	p := newObservedPod(t, newEars(), func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	for name, tc := range map[string]struct {
		encoding, body string
		status         int
		reason, told   string
	}{
		"compressed":    {"gzip", "not to be read", 415, failures.InvalidRequest, "send it without one"},
		"two encodings": {"identity, gzip", "not to be read", 415, failures.InvalidRequest, "send it without one"},
		"too large":     {"", sized(dialect.MaxBody + 1), 413, failures.RequestTooLarge, "more than 33554432 bytes"},
		"not JSON":      {"", `{"model"`, 400, failures.InvalidRequest, "JSON"},
		"empty":         {"", "", 400, failures.InvalidRequest, "JSON"},
	} {
		for _, known := range []bool{true, false} {
			var body io.Reader = strings.NewReader(tc.body)
			if !known {
				body = struct{ io.Reader }{body}
			}
			answer := p.send(chat, map[string]string{"Content-Encoding": tc.encoding}, body)
			reason, message := refused(t, answer)
			if answer.StatusCode != tc.status || reason != tc.reason || !strings.Contains(message, "tidewaiter: ") || !strings.Contains(message, tc.told) {
				t.Errorf("%s: %d %s %q", name, answer.StatusCode, reason, message)
			}
			told := p.told()
			if diff := cmp.Diff(failures.Answer{Status: tc.status, Reason: tc.reason}, told[len(told)-1]); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", name, diff)
			}
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests were sent on", n)
	}
}

// TestRequestsThatStall end, and hold nobody else meanwhile.
func TestRequestsThatStall(t *testing.T) {
	gateway := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	p := startPod(t, newEars(), readTime, gateway)
	var stalled sync.WaitGroup
	for range 32 {
		in, out := io.Pipe()
		defer out.Close()
		stalled.Go(func() {
			answer := p.send(chat, nil, in)
			if reason, _ := refused(t, answer); answer.StatusCode != http.StatusRequestTimeout || reason != failures.CallerStalls {
				t.Errorf("%d %s", answer.StatusCode, reason)
			}
		})
		if _, err := io.WriteString(out, `{"model"`); err != nil {
			t.Fatal(err)
		}
	}
	if answer := p.send(chat, nil, strings.NewReader(sized(2<<20))); answer.StatusCode != http.StatusOK {
		t.Errorf("beside them: %s", answer.Status)
	}
	stalled.Wait()
}

// TestLargeRequestsAtOnce: all of them are heard, whatever their calls take: the memory of one that was sent on is free.
func TestLargeRequestsAtOnce(t *testing.T) {
	e := newEars()
	begun, end := make(chan struct{}, 16), make(chan struct{})
	p := newObservedPod(t, e, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		<-end
		w.WriteHeader(http.StatusTeapot)
	})
	var calls sync.WaitGroup
	for _, known := range []bool{true, false} {
		for range 3 {
			var body io.Reader = strings.NewReader(sized(dialect.MaxBody))
			if !known {
				body = struct{ io.Reader }{body}
			}
			calls.Go(func() { p.send(chat, nil, body) })
		}
	}
	for range 6 {
		<-begun
	}
	if n := len(e.asked); n != 6 {
		t.Errorf("%d of 6 requests are heard", n)
	}
	close(end)
	calls.Wait()
}

// TestLargeRequestsThatAreKeptBack hold the memory of others: these are told to try again.
func TestLargeRequestsThatAreKeptBack(t *testing.T) {
	e := &keeping{ears: newEars(), kept: make(chan struct{}), free: make(chan struct{})}
	// On a busy machine the large one takes its time, too.
	p := startPod(t, e, 3*readTime, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	var calls sync.WaitGroup
	calls.Go(func() {
		if answer := p.send(chat, nil, strings.NewReader(sized(dialect.MaxBody))); answer.StatusCode != http.StatusOK {
			t.Errorf("the one that was kept back: %s", answer.Status)
		}
	})
	<-e.kept
	answer := p.send(chat, nil, strings.NewReader(sized(2<<20)))
	if reason, _ := refused(t, answer); answer.StatusCode != http.StatusServiceUnavailable || reason != failures.MemoryShare || answer.Header.Get("Retry-After") == "" {
		t.Errorf("%s %s %v", answer.Status, reason, answer.Header)
	}
	close(e.free)
	calls.Wait()
	if answer := p.send(chat, nil, strings.NewReader(sized(2<<20))); answer.StatusCode != http.StatusOK {
		t.Errorf("when there is room again: %s", answer.Status)
	}
}

// TestRequestsThatAreNotSentOn: their agent was ended, and the gateway gets none of them.
func TestRequestsThatAreNotSentOn(t *testing.T) {
	var reached atomic.Int64
	p := newObservedPod(t, newEars(), func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+chat, strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"ended"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(request); err == nil {
		_ = answer.Body.Close()
		t.Errorf("answered %s", answer.Status)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests were sent on", n)
	}
}
