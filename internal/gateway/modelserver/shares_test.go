// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// begin a request whose body comes from a reader, and leave its answer unread.
func (w *world) begin(feature string, body io.Reader) <-chan *http.Response {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.server.URL+messages, body)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+feature)
	answered := make(chan *http.Response, 1)
	go func() {
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		if err == nil {
			w.t.Cleanup(func() { _ = answer.Body.Close() })
			answered <- answer
		}
		close(answered)
	}()
	return answered
}

// TestStalledRequestsHoldNothing: requests that do not say how long they are, and of which nothing more comes, keep nobody else waiting, and
// end after a while.
func TestStalledRequestsHoldNothing(t *testing.T) {
	limits := quick()
	limits.Memory, limits.Stall = 80<<20, 2*time.Second
	w := newWorld(t, provider.New(providerKey), limits)
	var stalled []<-chan *http.Response
	for range 2 {
		body, more := io.Pipe()
		defer more.Close()
		stalled = append(stalled, w.begin("hostile", body))
		if _, err := more.Write([]byte(`{"mod`)); err != nil {
			t.Fatal(err)
		}
	}
	if answer, text := w.ask("login", http.MethodPost, messages, scripted(false, "large", "turns: [{text: Done}]")); answer.StatusCode != http.StatusOK {
		t.Errorf("another Feature: %d %s", answer.StatusCode, text)
	}
	for n := range stalled {
		answer := <-stalled[n]
		if answer == nil || answer.StatusCode != http.StatusRequestTimeout {
			t.Errorf("a stalled request: %v", answer)
		}
	}
	reasons := map[string]int{}
	for n := range 3 {
		reasons[w.last(n+1).Reason]++
	}
	if diff := cmp.Diff(map[string]int{"Answered": 1, "CallerStalls": 2}, reasons); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestAnUnreadAnswerIsCutOff: an agent that does not read gives its slots back.
func TestAnUnreadAnswerIsCutOff(t *testing.T) {
	limits := quick()
	limits.Unread, limits.PerFeature = 500*time.Millisecond, 1
	for kind, body := range map[string]string{
		"text/event-stream": streamStart + strings.Repeat("event: ping\ndata: {}\n\n", 2<<20) + streamEnd, "application/json": strings.Repeat(" ", 40<<20) + wholeAnswer,
	} {
		w := newWorld(t, saying(kind, body), limits)
		if answer := <-w.begin("login", strings.NewReader(plainRequest)); answer == nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%v", answer)
		}
		if r := w.last(1); r.Reason != "CallerStalls" {
			t.Errorf("%s: %+v", kind, r)
		}
		if answer, _ := w.ask("login", http.MethodGet, "/anthropic/v1/models", ""); answer.StatusCode != http.StatusOK {
			t.Errorf("after that: %d", answer.StatusCode)
		}
	}
}

// TestMemoryOfAFeature: what its calls hold is bounded, whoever else asks is answered, and all of it is given back.
func TestMemoryOfAFeature(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, 16)
	limits := quick()
	limits.Memory, limits.Wait, limits.PerFeature = 64<<20, time.Second, 8 // the agent sees the end of an answer before its memory is given back
	large := strings.Replace(plainRequest, "{", `{"x":"`+strings.Repeat("x", 10<<20)+`",`, 1)
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if n > 1<<20 {
			arrived <- struct{}{}
			<-release
		}
		answering(rw, r)
	}), limits)
	first := w.begin("hostile", strings.NewReader(large))
	<-arrived          // it has its memory
	for n := range 3 { // some of them do not see the answer, because they have not sent all of the request
		<-w.begin("hostile", strings.NewReader(large))
		if r := w.last(n + 1); r.Reason != "MemoryShare" || r.Status != http.StatusServiceUnavailable {
			t.Errorf("beyond its share: %+v", r)
		}
	}
	if answer, text := w.ask("login", http.MethodPost, messages, strings.Replace(plainRequest, "{", `{"x":"`+strings.Repeat("x", 1<<19)+`",`, 1)); answer.StatusCode != http.StatusOK {
		t.Errorf("another Feature: %d %s", answer.StatusCode, text)
	}
	close(release)
	if answer := <-first; answer == nil || answer.StatusCode != http.StatusOK {
		t.Errorf("within its share: %v", answer)
	}
	for range 8 { // as large as a share, one after the other
		if answer, text := w.ask("hostile", http.MethodPost, messages, large); answer.StatusCode != http.StatusOK {
			t.Fatalf("after that: %d %s", answer.StatusCode, text)
		}
	}
}

// TestMemoryOfAllFeatures: a Feature that has a part of its share left is told that others hold the rest, which is no fault of its agent.
func TestMemoryOfAllFeatures(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, 4)
	limits := quick()
	limits.Memory, limits.Wait = 640<<10, 200*time.Millisecond // two calls and a half
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		answering(rw, r)
	}), limits)
	for _, feature := range []string{"hostile", "login"} {
		w.begin(feature, strings.NewReader(plainRequest))
		<-arrived
	}
	if answer, text := w.ask("beside", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get(protocol.ReasonHeader) != "MemoryFull" {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if answer, text := w.ask("login", http.MethodPost, messages, plainRequest); answer.Header.Get(protocol.ReasonHeader) != "MemoryShare" {
		t.Errorf("a second call of a Feature that holds its share: %d %s", answer.StatusCode, text)
	}
	close(release)
}
