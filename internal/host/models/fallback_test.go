// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/host/callers"
)

const plainRequest = `{"model":"large","messages":[]}`

// failing is a backend whose part below /first answers as it is told, and whose other part is well.
type failing struct {
	first atomic.Pointer[http.HandlerFunc]
	asked atomic.Int64
}

func (f *failing) set(h http.HandlerFunc) { f.first.Store(&h) }

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/first") {
		f.asked.Add(1)
		(*f.first.Load())(w, r)
		return
	}
	answering(w, r)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// TestAnotherBackendAnswers where the first cannot, with its own model, and both calls are in the ledger. A backend without a key is passed over.
func TestAnotherBackendAnswers(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{
		"overloaded": status(529), "broken": status(500), "limited": status(429), "not accepted": status(401), "elsewhere": status(302),
		"cut off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			f := &failing{}
			f.set(first)
			w := newWorld(t, f, quick())
			if answer, text := w.ask("backed", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusOK || text != wholeAnswer {
				t.Errorf("%d %s", answer.StatusCode, text)
			}
			if r := w.last(1); r.Backend != "main" || r.Model != "small" || r.Reason != "Answered" || r.Status != http.StatusOK {
				t.Errorf("%+v", r)
			}
			turns := w.recorded()
			if len(turns) != 2 || turns[0].Backend != "first" || turns[0].Reason == "Answered" || turns[0].Tokens.Input != 0 || turns[1].Backend != "main" || turns[1].Tokens.Input != 1000 {
				t.Errorf("%+v", turns)
			}
		})
	}
	// What the provider says about a request is for the agent.
	f := &failing{}
	f.set(status(400))
	w := newWorld(t, f, quick())
	if answer, _ := w.ask("backed", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a request that is refused: %d", answer.StatusCode)
	}
}

// TestAFailingBackendIsLeftAlone: after five calls that failed no call is made any more, until one after a while tries whether it works
// again. Calls that another backend can answer go there at once.
func TestAFailingBackendIsLeftAlone(t *testing.T) {
	f := &failing{}
	f.set(status(500))
	w := newWorld(t, f, quick())
	for n := range 5 {
		if answer, _ := w.ask("alone", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusInternalServerError {
			t.Fatalf("before: %d", answer.StatusCode)
		}
		w.last(n + 1) // the agent sees the end before the call has ended
	}
	asked := f.asked.Load()
	answer, text := w.ask("alone", http.MethodPost, messages, plainRequest)
	if answer.Header.Get(callers.ReasonHeader) != "BackendAvoided" || answer.Header.Get("Retry-After") == "1" || !strings.Contains(text, `the backend \"alone\" has failed 5 times in a row and gets no calls for`) || f.asked.Load() != asked {
		t.Errorf("%d %v %s", answer.StatusCode, answer.Header, text)
	}
	w.skipped.Store(int64(time.Minute))
	f.set(answering)
	for n := range 2 {
		if answer, text := w.ask("alone", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusOK {
			t.Errorf("after a while: %d %s", answer.StatusCode, text)
		}
		w.last(n + 7)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff([]string{"alone true", "alone false"}, w.avoided); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestConcurrencyOfABackend: as many calls as it takes at once are made. Others wait as long as a backend may be silent, and go
// elsewhere then, or are told to try again.
func TestConcurrencyOfABackend(t *testing.T) {
	f, release := &failing{}, make(chan struct{})
	f.set(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			fmt.Fprint(w, ": not silent\n\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-release:
				fmt.Fprint(w, streamStart+streamEnd)
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	for _, feature := range []string{"backed", "alone"} {
		asked := f.asked.Load()
		w := newWorld(t, f, quick())
		w.silence = 500 * time.Millisecond
		first := make(chan string, 1)
		go func() {
			_, text := w.ask(feature, http.MethodPost, messages, plainRequest)
			first <- text
		}()
		for f.asked.Load() == asked {
			time.Sleep(time.Millisecond)
		}
		answer, text := w.ask(feature, http.MethodPost, messages, plainRequest)
		switch {
		case feature == "backed" && text != wholeAnswer:
			t.Errorf("the other backend: %d %s", answer.StatusCode, text)
		case feature == "alone" && (answer.Header.Get(callers.ReasonHeader) != "TooManyCalls" || !strings.Contains(text, "as many calls as it takes at once (1)")):
			t.Errorf("without another backend: %d %s", answer.StatusCode, text)
		case f.asked.Load() != asked+1:
			t.Errorf("the backend was asked %d times at once", f.asked.Load()-asked)
		}
		release <- struct{}{}
		if text := <-first; !strings.HasSuffix(text, streamEnd) {
			t.Errorf("the first call: %s", text)
		}
	}
}
