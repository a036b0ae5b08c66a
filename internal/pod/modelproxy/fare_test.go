// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// streamed answers of Chat Completions.
const (
	whole  = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	broken = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Ye\"}}]}\n\n"
	failed = broken + "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"
)

// TestHowCallsFare: of each call for an answer it is told once, before the agent has its end, whether the model has answered and why not; of
// others, and of those that the agent gives up, nothing.
func TestHowCallsFare(t *testing.T) {
	const (
		heard   = `{"model":"a","stream":true,"messages":[{"role":"user","content":"do"}]}`
		unheard = `{"model":"a","stream":true,"messages":[{"role":"user","content":"unheard"}]}`
	)
	stream := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
		}
	}
	for name, test := range map[string]struct {
		path, body string
		answer     http.HandlerFunc
		want       []failures.Answer
	}{
		"answered":                {"/openai/v1/chat/completions", heard, stream(whole), []failures.Answer{{Status: 200}}},
		"answered unheard":        {"/openai/v1/chat/completions", unheard, stream(whole), []failures.Answer{{Status: 200}}},
		"refused by the watchdog": {"/openai/v1/chat/completions", "nothing", stream(whole), []failures.Answer{{Status: 400, Reason: failures.InvalidRequest}}},
		"refused by the gateway": {"/openai/v1/chat/completions", heard, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(protocol.ReasonHeader, "ModelNotAvailable")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, []failures.Answer{{Status: 503, Reason: "ModelNotAvailable"}}},
		"refused by the provider": {"/openai/v1/chat/completions", heard, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) }, []failures.Answer{{Status: 529}}},
		"an error in the stream":  {"/openai/v1/chat/completions", heard, stream(failed), []failures.Answer{{Status: 200, Reason: failures.AnswerFailed}}},
		"a stream without an end": {"/openai/v1/chat/completions", heard, stream(broken), []failures.Answer{{Status: 200, Reason: failures.AnswerCutOff}}},
		"cut off by the gateway": {"/openai/v1/chat/completions", unheard, func(w http.ResponseWriter, r *http.Request) {
			stream(broken)(w, r)
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(http.TrailerPrefix+protocol.ReasonHeader, "LedgerUnavailable")
		}, []failures.Answer{{Status: 200, Reason: "LedgerUnavailable"}}},
		"the connection breaks": {"/openai/v1/chat/completions", heard, func(w http.ResponseWriter, r *http.Request) {
			stream(broken)(w, r)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, []failures.Answer{{Status: 200, Reason: failures.AnswerBroken}}},
		"no gateway": {"/openai/v1/chat/completions", heard, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			[]failures.Answer{{Status: 503, Reason: failures.GatewayUnreachable}}},
		"no call for an answer": {"/anthropic/v1/messages/count_tokens", "{}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newObservedPod(t, newEars(), test.answer)
			answer := p.send(test.path, nil, strings.NewReader(test.body))
			_, _ = io.ReadAll(answer.Body)
			if diff := cmp.Diff(test.want, p.told()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestACallThatIsGivenUp says nothing of the model.
func TestACallThatIsGivenUp(t *testing.T) {
	under, over := make(chan struct{}), make(chan struct{})
	p := newObservedPod(t, newEars(), func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "messages") {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, broken)
		_ = http.NewResponseController(w).Flush()
		close(under)
		<-r.Context().Done()
		close(over)
	})
	ctx, hangUp := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/openai/v1/chat/completions", strings.NewReader(`{"model":"a","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	<-under
	hangUp()
	<-over
	p.send("/anthropic/v1/messages", nil, strings.NewReader(`{"model":"a","messages":[]}`))
	if diff := cmp.Diff([]failures.Answer{{Status: http.StatusTooManyRequests}}, p.told()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
