// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestRejections are heard before an answer and behind it; the agent gets the answer alone.
func TestRejections(t *testing.T) {
	p := newPod(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Anthropic-Beta") {
		case "before":
			w.Header().Set(protocol.FailsHeader, url.QueryEscape("no summary: 100 %"))
			w.WriteHeader(http.StatusBadRequest)
		case "behind":
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, "event: error\ndata: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(http.TrailerPrefix+protocol.FailsHeader, strings.Repeat("x", 5000))
		default:
			_, _ = io.WriteString(w, "fine")
		}
	})
	ask := func(kind string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/anthropic/v1/messages", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Anthropic-Beta", kind)
		request.Header.Set(protocol.FailsHeader, "the agent says so itself")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for kind, want := range map[string]string{"before": "no summary: 100 %", "behind": strings.Repeat("x", 100)} {
		if answer := ask(kind); answer.Header.Get(protocol.FailsHeader)+answer.Trailer.Get(protocol.FailsHeader) != "" {
			t.Errorf("%s: the agent was told: %v %v", kind, answer.Header, answer.Trailer)
		}
		ask(kind) // one that nobody has taken yet is enough
		select {
		case got := <-p.proxy.Rejections():
			if !strings.HasPrefix(got.Message, want) || len(got.Message) > protocol.MaxFails || got.Task != "login" {
				t.Errorf("%s: %q", kind, got)
			}
		default:
			t.Errorf("%s: nothing was heard", kind)
		}
	}
	ask("fine")
	select {
	case got := <-p.proxy.Rejections():
		t.Errorf("of an answer that was accepted: %q", got)
	default:
	}
}
