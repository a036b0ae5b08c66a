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

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
)

// measures are the requests for a count, in each dialect that has one.
func measures() map[string]string {
	return map[string]string{
		messages + "/count_tokens":            `{"model":"m","tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[{"role":"user","content":"Hello"}]}`,
		"/openai/v1/responses/input_tokens":   `{"model":"m","tools":[{"type":"web_search"}],"input":"Hello"}`,
		"/gemini/v1beta/models/m:countTokens": `{"tools":[{"googleSearch":{}}],"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`,
	}
}

// TestCountsAreRecorded: a request for a count has what a request for an answer has, passes the same filter, and is in the ledger, where those of a minute
// share a row. It is no turn, and no budget is asked.
func TestCountsAreRecorded(t *testing.T) {
	for path, body := range measures() {
		var got string
		status := http.StatusOK
		w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			got = string(text)
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, `{"input_tokens":7}`)
		}), quick())
		w.budgets = []ledger.Budget{{Scope: ledger.Feature, Key: "uid-of-composed", Limit: ledger.Amount{Output: 1}}}
		if answer, text := w.ask("composed", http.MethodPost, path, body); answer.StatusCode != http.StatusOK || text != `{"input_tokens":7}` {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
		w.last(1)
		// Google takes contents alone here.
		if strings.Contains(got, "earch") || strings.Contains(got, "Be kind.") == strings.Contains(path, "gemini") {
			t.Errorf("%s: the provider got %s", path, got)
		}
		status = http.StatusBadRequest
		w.ask("composed", http.MethodPost, path, body)
		w.last(2)
		w.mu.Lock()
		if len(w.refused) != 2 || len(w.turns) != 0 || len(w.wanted) != 0 {
			t.Fatalf("%s: in the ledger are %+v, turns %+v, reservations %+v", path, w.refused, w.turns, w.wanted)
		}
		first := w.refused[0]
		type row struct {
			Feature, Backend, Model, Reason string
			Status                          int
			Bytes, Attempt                  int64
			Task, Detail                    string
		}
		name := map[bool]string{true: "google/google_search", false: "web_search"}[strings.Contains(path, "gemini")]
		want := row{"composed", "main", "large", "Measured", 200, int64(len(body)), 2, "form", first.Detail}
		if diff := cmp.Diff(want, row{first.Feature, first.Backend, first.Model, first.Reason, first.Status, first.RequestBytes, first.Attempt, first.Task, first.Detail}); diff != "" || !strings.HasSuffix(first.Detail, name) {
			t.Errorf("%s: %q (-want +got):\n%s", path, first.Detail, diff)
		}
		if second := w.refused[1]; second.Reason != "Measured" || second.Status != http.StatusBadRequest || second.FoldID() == first.FoldID() {
			t.Errorf("%s: a count that is refused: %+v", path, second)
		}
		w.mu.Unlock()
	}
}

// TestCountsAreLimited as calls for answers are: by the rate of the Feature, by its calls at once, and by its memory.
func TestCountsAreLimited(t *testing.T) {
	limits := quick()
	limits.PerFeature, limits.Memory, limits.Wait = 1, 8<<20, 50*time.Millisecond
	for path, body := range measures() {
		arrived, release := make(chan struct{}, 8), make(chan struct{})
		w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if text, _ := io.ReadAll(r.Body); strings.Contains(string(text), "Wait") {
				arrived <- struct{}{}
				<-release
			}
			_, _ = io.WriteString(rw, `{"input_tokens":7}`)
		}), limits)
		w.rate = map[string]coremodels.Rate{"hurried": {PerMinute: 1, Origin: "built-in"}}
		for _, tc := range []struct {
			feature, body, reason string
			status                int
		}{
			{"hurried", body, "CallRateExceeded", http.StatusTooManyRequests},
			{"login", body, "TooManyCalls", http.StatusTooManyRequests},
			{"large", strings.Replace(body, "Hello", strings.Repeat("x", 6<<20), 1), "MemoryShare", http.StatusServiceUnavailable},
		} {
			done := make(chan struct{})
			switch tc.feature {
			case "hurried":
				w.ask("hurried", http.MethodPost, path, body)
			case "login":
				go func() {
					defer close(done)
					w.ask("login", http.MethodPost, path, strings.Replace(body, "Hello", "Wait", 1))
				}()
				<-arrived
			}
			// The calls before this one can be observed after it.
			answer, text := w.ask(tc.feature, http.MethodPost, path, tc.body)
			if answer.StatusCode != tc.status || answer.Header.Get("Tidewaiter-Reason") != tc.reason {
				t.Errorf("%s: %s: %d %s", path, tc.feature, answer.StatusCode, text)
			}
			for range 1000 {
				if w.refusals(tc.feature, tc.reason) > 0 {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			if n := w.refusals(tc.feature, tc.reason); n != 1 {
				t.Errorf("%s: %s: the ledger has %d calls with the reason %s", path, tc.feature, n, tc.reason)
			}
			if tc.feature == "login" {
				release <- struct{}{}
				<-done
			}
		}
	}
}

// refusals is how many calls of a Feature are in the ledger with the reason.
func (w *world) refusals(feature, reason string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, i := range w.refused {
		if i.FeatureUID == "uid-of-"+feature && i.Reason == reason {
			n++
		}
	}
	return n
}
