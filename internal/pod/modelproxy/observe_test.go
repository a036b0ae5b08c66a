// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
)

// ears hear every request, and put a text in front of its conversation's end.
type ears struct {
	asked chan string
	heard chan string
	// passed says that some of an answer has passed by.
	passed atomic.Bool
}

func newEars() *ears { return &ears{asked: make(chan string, 16), heard: make(chan string, 16)} }

func (e *ears) Known([]byte) conversation.Known { return conversation.Known{} }

func (e *ears) Asked(_ context.Context, r dialect.Request) ([]byte, modelproxy.Exchange) {
	e.asked <- string(r.Bytes())
	if bytes.Contains(r.Bytes(), []byte("ended")) {
		return nil, nil
	}
	if bytes.Contains(r.Bytes(), []byte("unheard")) {
		return r.Bytes(), nil
	}
	return bytes.Replace(r.Bytes(), []byte(`"do"`), []byte(`"do [SUPERVISOR] else"`), 1), e
}

func (e *ears) Turn() int64 { return 12 }

func (e *ears) Answered(a *conversation.Answer, window int64) {
	if !e.passed.Swap(false) {
		e.heard <- "an answer of which nothing has passed by"
	}
	e.heard <- fmt.Sprintf("%q %d tools, ended %t, window %d", a.Text, len(a.Tools), a.Ended, window)
}

func (e *ears) Passed(says bool) {
	if says {
		e.passed.Store(true)
	}
}

func (e *ears) Failed(a failures.Answer) {
	e.heard <- strings.TrimSpace(fmt.Sprintf("status %d %s", a.Status, a.Reason))
}

func (e *ears) next(t *testing.T) string {
	t.Helper()
	select {
	case text := <-e.heard:
		return text
	case <-t.Context().Done():
		return "nothing"
	}
}

// TestObserver: an observer hears each request for an answer and what it is answered, and may have another one sent on. Nothing else is
// held up by it.
func TestObserver(t *testing.T) {
	e := newEars()
	const events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	p := newObservedPod(t, e, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if int64(len(body)) != r.ContentLength && r.ContentLength >= 0 {
			t.Errorf("%d bytes of %d", len(body), r.ContentLength)
		}
		w.Header().Set("Seen", fmt.Sprintf("%.200s", body))
		w.Header().Set("Turn", r.Header.Get(dialect.TurnHeader))
		w.Header().Set(protocol.WindowHeader, "1000")
		switch {
		case strings.Contains(string(body), "budget"):
			w.Header().Set(protocol.ReasonHeader, protocol.ReasonBudgetExceeded)
			w.WriteHeader(http.StatusTooManyRequests)
		case strings.Contains(string(body), "busy"):
			w.WriteHeader(529)
		case strings.Contains(string(body), "cut"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, events[:60])
		case strings.Contains(string(body), "whole"):
			fmt.Fprint(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Whole."},"finish_reason":"stop"}]}`)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, events)
		}
	})
	const chat = "/openai/v1/chat/completions"
	large := `{"model":"m","messages":["` + strings.Repeat("x", 9<<20) + `"]}`
	for name, tc := range map[string]struct {
		path, body  string
		header      map[string]string
		seen, heard string
	}{
		"steered":           {chat, `{"model":"m","messages":[{"role":"user","content":"do"}]}`, nil, `{"model":"m","messages":[{"role":"user","content":"do [SUPERVISOR] else"}]}`, `"Yes." 0 tools, ended true, window 1000`},
		"no stream":         {chat, `{"model":"m","messages":[{"role":"user","content":"whole"}]}`, nil, `{"model":"m","messages":[{"role":"user","content":"whole"}]}`, `"Whole." 0 tools, ended true, window 1000`},
		"cut off":           {chat, `{"model":"m","messages":["cut"]}`, nil, `{"model":"m","messages":["cut"]}`, `"Yes." 0 tools, ended false, window 1000`},
		"busy":              {chat, `{"model":"m","messages":["busy"]}`, nil, `{"model":"m","messages":["busy"]}`, "status 529"},
		"nobody hears":      {chat, `{"model":"m","messages":["unheard"]}`, nil, `{"model":"m","messages":["unheard"]}`, ""},
		"another question":  {"/openai/v1/responses/input_tokens", `{"model":"m","input":"do"}`, nil, `{"model":"m","input":"do"}`, ""},
		"a side question":   {"/openai/v1/responses/compact", `{"model":"m","input":"do"}`, nil, `{"model":"m","input":"do"}`, ""},
		"one that is large": {chat, large, nil, large[:200], `"Yes." 0 tools, ended true, window 1000`},
		"without encoding":  {chat, `{"model":"m","messages":["do"]}`, map[string]string{"Content-Encoding": "identity"}, `{"model":"m","messages":["do [SUPERVISOR] else"]}`, `"Yes." 0 tools, ended true, window 1000`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, known := range []bool{true, false} {
				var body io.Reader = strings.NewReader(tc.body)
				if !known {
					body = struct{ io.Reader }{body}
				}
				answer := p.send(tc.path, tc.header, body)
				_, _ = io.Copy(io.Discard, answer.Body)
				if got := answer.Header.Get("Seen"); got != tc.seen || answer.Header.Get(protocol.WindowHeader) != "" {
					t.Errorf("sent on: %.200q, want %.200q; %v", got, tc.seen, answer.Header)
				}
				if turn := answer.Header.Get("Turn"); (tc.heard != "") != (turn == "12") {
					t.Errorf("the gateway is told of turn %q", turn)
				}
				if tc.heard != "" {
					if got := e.next(t); got != tc.heard {
						t.Errorf("heard %s, want %s", got, tc.heard)
					}
				}
			}
		})
	}
	if len(e.heard) > 0 {
		t.Errorf("heard once more: %s", <-e.heard)
	}
}

// TestAGatewayThatIsAway is heard as a failure.
func TestAGatewayThatIsAway(t *testing.T) {
	e := newEars()
	p := newObservedPod(t, e, func(http.ResponseWriter, *http.Request) {})
	p.gateway.Close()
	answer := p.send("/anthropic/v1/messages", nil, strings.NewReader(`{"model":"m","messages":[]}`))
	if got := e.next(t); got != "status 503 GatewayUnreachable" || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("heard %s, status %d", got, answer.StatusCode)
	}
}

// keeping keeps the first request back.
type keeping struct {
	*ears
	once       sync.Once
	kept, free chan struct{}
}

func (k *keeping) Asked(ctx context.Context, r dialect.Request) ([]byte, modelproxy.Exchange) {
	k.once.Do(func() {
		close(k.kept)
		<-k.free
	})
	return k.ears.Asked(ctx, r)
}
