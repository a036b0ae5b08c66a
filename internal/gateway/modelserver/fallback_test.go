// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
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

// TestAFailingBackendIsLeftAlone: after five calls of two Features that failed no call is made any more, until one after a while tries whether it
// works again. Calls that another backend can answer go there at once.
func TestAFailingBackendIsLeftAlone(t *testing.T) {
	for _, code := range []int{http.StatusInternalServerError, http.StatusTooManyRequests} {
		f := &failing{}
		f.set(status(code))
		w := newWorld(t, f, quick())
		for n, feature := range []string{"alone", "beside", "alone", "alone", "beside"} {
			if answer, _ := w.ask(feature, http.MethodPost, messages, plainRequest); answer.StatusCode != code {
				t.Fatalf("before: %d", answer.StatusCode)
			}
			w.last(n + 1) // the agent sees the end before the call has ended
		}
		reached := func() []coremodels.Reach {
			return w.models.Reached([]coremodels.Backend{{Name: "alone"}, {Name: "never asked"}})
		}
		if r := reached(); len(r) != 1 || r[0].Backend != "alone" || r[0].Avoided.IsZero() || !r[0].Answered.IsZero() {
			t.Errorf("while it fails: %+v", r)
		}
		asked := f.asked.Load()
		answer, text := w.ask("alone", http.MethodPost, messages, plainRequest)
		if answer.Header.Get(protocol.ReasonHeader) != "BackendAvoided" || answer.Header.Get("Retry-After") == "1" || !strings.Contains(text, `the backend \"alone\" has failed 5 times in a row and gets no calls of anybody for`) || f.asked.Load() != asked {
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
		if r := reached(); len(r) != 1 || !r[0].Avoided.IsZero() || r[0].Answered.IsZero() {
			t.Errorf("when it answers again: %+v", r)
		}
		w.mu.Lock()
		if diff := cmp.Diff([]string{"alone true", "alone false"}, w.avoided); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		w.mu.Unlock()
	}
}

// TestOneFeatureClosesNoBackend for others: however its calls fail, they are answered. It is itself kept away where its calls all fail.
func TestOneFeatureClosesNoBackend(t *testing.T) {
	for name, tc := range map[string]struct {
		backend http.HandlerFunc
		reason  string
		kept    bool
	}{
		"errors": {status(500), "Answered", true}, "limits": {status(429), "Answered", true},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "BackendUnreachable", true},
		"silence": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "BackendSilent", false},
		"silence in an answer": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, streamStart)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "BackendSilent", false},
		"an answer that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, streamStart)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "AnswerCutOff", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &failing{}
			f.set(tc.backend)
			w := newWorld(t, f, quick())
			if tc.reason == "BackendSilent" {
				w.silence = 100 * time.Millisecond
			}
			for n := range 6 {
				w.ask("alone", http.MethodPost, messages, strings.Replace(plainRequest, "{", `{"stream":true,`, 1))
				want := tc.reason
				if n == 5 && tc.kept {
					want = "BackendAvoided"
				}
				if r := w.last(n + 1); r.Reason != want {
					t.Errorf("call %d of the Feature whose calls fail: %s", n, r.Reason)
				}
			}
			f.set(answering)
			w.silence = time.Minute
			if answer, text := w.ask("beside", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusOK || text != wholeAnswer {
				t.Errorf("another Feature: %d %s", answer.StatusCode, text)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.avoided) > 0 {
				t.Errorf("told %v", w.avoided)
			}
		})
	}
}

// TestSilenceIsABackends: what comes as a whole, or after thoughts, may begin later than a profile allows between two parts, and while the agent
// does not read what has come, the backend is not silent.
func TestSilenceIsABackends(t *testing.T) {
	const silence = time.Second
	thinking := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasPrefix(r.URL.Path, "/v1/responses") { // it says at once that it has begun
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"type\":\"response.created\",\"response\":{}}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-time.After(2 * silence):
			answering(w, r)
		case <-r.Context().Done():
		}
	}
	for path, body := range map[string]string{messages: plainRequest, "/openai/v1/responses": `{"model":"large","stream":true,"reasoning":{"effort":"high"},"input":[]}`} {
		w := newWorld(t, http.HandlerFunc(thinking), quick())
		w.silence = silence
		if answer, text := w.ask("login", http.MethodPost, path, body); answer.StatusCode != http.StatusOK || !strings.Contains(text, "usage") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
	// Until its text begins, a model that reasons may take minutes, as a busy machine may.
	event := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"" + strings.Repeat("hm ", 300) + "\"}}\n\n"
	long := strings.Repeat(event, 40_000) // far more than what is on its way in buffers
	w := newWorld(t, saying("text/event-stream", streamStart+long+streamEnd), quick())
	w.silence = 3 * silence
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+messages, strings.NewReader(strings.Replace(plainRequest, "{", `{"stream":true,"thinking":{"type":"adaptive"},`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer login")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	time.Sleep(6 * silence) // the agent is busy
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.HasSuffix(string(text), streamEnd) {
		t.Errorf("%d bytes of %d, which end with %q: %v", len(text), len(long), text[max(0, len(text)-200):], err)
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
		first := make(chan string, 1)
		go func() {
			_, text := w.ask(feature, http.MethodPost, messages, plainRequest)
			first <- text
		}()
		for f.asked.Load() == asked {
			time.Sleep(time.Millisecond)
		}
		w.silence = 500 * time.Millisecond // for those that wait, and not for the call that is being answered
		answer, text := w.ask(feature, http.MethodPost, messages, plainRequest)
		switch {
		case feature == "backed" && text != wholeAnswer:
			t.Errorf("the other backend: %d %s", answer.StatusCode, text)
		case feature == "alone" && (answer.Header.Get(protocol.ReasonHeader) != "TooManyCalls" || !strings.Contains(text, "as one Feature may at the backend")):
			t.Errorf("without another backend: %d %s", answer.StatusCode, text)
		case f.asked.Load() != asked+1:
			t.Errorf("the backend was asked %d times at once", f.asked.Load()-asked)
		}
		if feature == "alone" {
			if answer, text := w.ask("beside", http.MethodPost, messages, plainRequest); answer.Header.Get(protocol.ReasonHeader) != "BackendFull" || !strings.Contains(text, "as many calls as it takes at once (1)") {
				t.Errorf("another Feature without another backend: %d %s", answer.StatusCode, text)
			}
		}
		release <- struct{}{}
		if text := <-first; !strings.HasSuffix(text, streamEnd) {
			t.Errorf("the first call: %s", text)
		}
	}
}
