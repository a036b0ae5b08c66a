// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// streams are a request for a stream of each dialect, what a provider sends first, and events that end its answer, by what they are. They are from the
// providers' pages: https://platform.claude.com/docs/en/build-with-claude/streaming, https://platform.openai.com/docs/api-reference/responses-streaming,
// https://platform.openai.com/docs/api-reference/chat/streaming, https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent.
var streams = map[string]struct {
	path, request, first string
	ends                 map[string]string
}{
	"anthropic": {
		path: "/v1/messages", request: `{"model":"large","stream":true,"max_tokens":99,"messages":[{"role":"user","content":"Hello"}]}`,
		first: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"large\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Half of\"}}\n\n",
		ends: map[string]string{
			"whole": "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
			"error": "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
		},
	},
	"openai-responses": {
		path: "/v1/responses", request: `{"model":"large","stream":true,"store":false,"input":"Hello"}`,
		first: "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"in_progress\",\"model\":\"large\",\"output\":[]}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"Half of\"}\n\n",
		ends: map[string]string{
			"whole":   "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"completed\",\"model\":\"large\",\"output\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":5,\"total_tokens\":14}}}\n\n",
			"refused": "event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"},\"model\":\"large\",\"output\":[]}}\n\n",
			"failed":  "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"The model failed to generate a response.\"},\"model\":\"large\",\"output\":[]}}\n\n",
			"error":   "event: error\ndata: {\"type\":\"error\",\"code\":\"ERR_SOMETHING\",\"message\":\"Something went wrong\",\"param\":null}\n\n",
			// An event that is larger than what the gateway reads of one: the agent has all of it.
			"large": "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"instructions\":\"" + strings.Repeat("x", 5<<20) + "\"}}\n\n",
		},
	},
	"openai-chat": {
		path: "/v1/chat/completions", request: `{"model":"large","stream":true,"messages":[{"role":"user","content":"Hello"}]}`,
		first: "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"large\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Half of\"},\"finish_reason\":null}]}\n\n",
		ends: map[string]string{
			"whole": "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"large\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
			// Some servers do not send [DONE].
			"finished": "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"large\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n",
			"done":     "data: [DONE]\n\n",
			"error":    "data: {\"error\":{\"message\":\"The server had an error while processing your request\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n",
		},
	},
	"gemini": {
		path: "/v1beta/models/large:streamGenerateContent?alt=sse", request: `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`,
		first: "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Half of\"}]},\"index\":0}],\"modelVersion\":\"large\"}\n\n",
		ends: map[string]string{
			"whole":   "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":5,\"totalTokenCount\":14}}\n\n",
			"refused": "data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"},\"usageMetadata\":{\"promptTokenCount\":9,\"totalTokenCount\":9}}\n\n",
			"error":   "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n",
		},
	},
}

// TestAStreamThatEndsEarlyEndsWithAnError: a load balancer that ends a stream, or a frame of HTTP/2 that does, ends it as if it were whole. Clients that
// read the events take what there is for the answer, so the gateway adds the event that says that it broke off. Whatever ends an answer passes as it is.
func TestAStreamThatEndsEarlyEndsWithAnError(t *testing.T) {
	for _, d := range dialect.All() {
		s, known := streams[d.Name]
		if !known {
			t.Fatalf("no stream of %s", d.Name)
		}
		ask := func(t *testing.T, sent string) (text string, w *world) {
			t.Helper()
			w = newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(rw, sent)
			}), quick())
			_, text = w.ask("login", http.MethodPost, d.Prefix+s.path, s.request)
			return text, w
		}
		for name, sent := range map[string]string{"early": s.first, "in an event": s.first + "data: {\"type\":", "before it begins": ""} {
			t.Run(d.Name+"/"+name, func(t *testing.T) {
				text, w := ask(t, sent)
				if !strings.HasPrefix(text, s.first[:min(len(s.first), len(sent))]) || !strings.Contains(text, "broke off") {
					t.Errorf("the agent gets %q", text)
				}
				if r := w.last(1); r.Reason != "AnswerCutOff" {
					t.Errorf("observed %+v", r)
				}
				if turns := w.recorded(); len(turns) != 1 || turns[0].Reason != "AnswerCutOff" || !turns[0].Estimated {
					t.Errorf("recorded %+v", turns)
				}
			})
		}
		for name, end := range s.ends {
			t.Run(d.Name+"/"+name, func(t *testing.T) {
				text, w := ask(t, s.first+end)
				if text != s.first+end {
					t.Errorf("the agent gets %.2000q", text)
				}
				if r := w.last(1); r.Reason != "Answered" {
					t.Errorf("observed %+v", r)
				}
			})
		}
	}
}

// TestAStreamThatLastsBehindItsAnswer: once a stream has ended its answer, the agent has the whole answer. It hears of nothing that goes wrong behind it, so
// that it does not ask and pay again, and it does not wait for a connection that the backend keeps open.
func TestAStreamThatLastsBehindItsAnswer(t *testing.T) {
	t.Parallel()
	for _, d := range dialect.All() {
		s := streams[d.Name]
		sent := s.first + s.ends["whole"]
		for name, behind := range map[string]func(http.ResponseWriter, *http.Request){
			"it breaks":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"it is silent":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			"it sends more": comment,
		} {
			t.Run(d.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(rw, sent)
					_ = http.NewResponseController(rw).Flush()
					behind(rw, r)
				}), quick())
				began := time.Now()
				_, text := w.ask("login", http.MethodPost, d.Prefix+s.path, s.request)
				if strings.ReplaceAll(text, more, "") != sent {
					t.Errorf("the agent gets %q", text)
				}
				if r, took := w.last(1), time.Since(began); r.Reason != "Answered" || took > w.silence/2 {
					t.Errorf("observed %+v, after %s", r, took)
				}
				if turns := w.recorded(); len(turns) != 1 || turns[0].Reason != "Answered" {
					t.Errorf("recorded %+v", turns)
				}
			})
		}
	}
}

// more of a stream that says nothing.
const more = ": more\n\n"

// comment for as long as somebody listens.
func comment(w http.ResponseWriter, r *http.Request) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
			fmt.Fprint(w, more)
			_ = http.NewResponseController(w).Flush()
		}
	}
}
