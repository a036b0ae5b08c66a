// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// openaiPrefix is where both dialects of OpenAI are: their clients have one base URL for all.
const openaiPrefix = "/openai"

// badRequest is the status of HTTP that says that a request cannot be answered as it is.
const badRequest = 400

// openaiHeaders are the headers of the official clients, of Codex and of opencode.
func openaiHeaders() []string {
	return slices.Concat([]string{
		"x-client-request-id", "originator", "session-id", "session_id", "thread-id", "conversation_id", "x-session-id", "x-session-affinity",
		"x-codex-turn-state", "x-codex-turn-metadata", "x-codex-window-id", "x-codex-parent-thread-id", "x-codex-installation-id",
	}, stainless)
}

// openaiAnswers are the headers of answers; the name of the organization is nobody's business.
var openaiAnswers = []string{"openai-processing-ms", "openai-version", "openai-model", "x-codex-turn-state"}

func openaiKey(key string) (name, value string) { return "Authorization", "Bearer " + key }

// openaiResponses is the Responses API, as server-sent events; its transport over WebSocket is not served, and clients fall
// back from it. https://platform.openai.com/docs/api-reference/responses
func openaiResponses() Dialect {
	return Dialect{
		Name: "openai-responses", Prefix: openaiPrefix,
		Endpoints: []Endpoint{
			{Method: "POST", Path: "/v1/responses", Kind: Generate, Stores: true},
			{Method: "POST", Path: "/v1/responses/compact", Kind: Generate, Side: true},
			{Method: "POST", Path: "/v1/responses/input_tokens", Kind: Measure},
		},
		wall:    responsesWall,
		limits:  limits{most: [][]string{{"max_output_tokens"}}},
		History: "input", choice: "tool_choice", noTools: `"none"`, behind: behindItem, behindText: behindText, message: readResponses, tools: responsesResults, turn: responsesTurn,
		System: "instructions", place: func(r Request) (place, error) { return r.placeIn("instructions") },
		Answer:  func() conversation.Decoder { return &responsesAnswer{} },
		retext:  func(text string) retexter { return &responsesRetext{text: text} },
		Headers: openaiHeaders(), AnswerHeaders: openaiAnswers, Key: openaiKey, Models: openaiModels, Error: openaiError,
		Broken: func(f Failure) []byte {
			if f.Status == badRequest { // clients try again after any error but this
				return responsesFailed(f)
			}
			type event struct {
				Type    string `json:"type"`
				Code    string `json:"code"`
				Message string `json:"message"`
				Param   any    `json:"param"`
			}
			return slices.Concat([]byte("event: error\ndata: "), encoded(event{Type: "error", Code: "server_error", Message: f.Message}), []byte("\n\n"))
		},
	}
}

// openaiChat is the Chat Completions API, which most servers of models speak.
// https://platform.openai.com/docs/api-reference/chat
func openaiChat() Dialect {
	return Dialect{
		Name: "openai-chat", Prefix: openaiPrefix,
		Endpoints: []Endpoint{
			{Method: "POST", Path: "/v1/chat/completions", Kind: Generate},
			{Method: "GET", Path: "/v1/models", Kind: List},
		},
		wall: chatWall, usageOnDemand: true,
		limits:  limits{most: [][]string{{"max_completion_tokens"}, {"max_tokens"}}, choices: []string{"n"}},
		History: "messages", choice: "tool_choice", noTools: `"none"`, behind: behindMessage(true), message: readChat, tools: chatResults, turn: chatTurn,
		System: "messages", place: placeInMessages,
		Answer:  func() conversation.Decoder { return &chatAnswer{} },
		retext:  func(text string) retexter { return &chatRetext{text: text} },
		Headers: openaiHeaders(), AnswerHeaders: openaiAnswers, Key: openaiKey, Models: openaiModels, Error: openaiError,
		Broken: func(f Failure) []byte { return slices.Concat([]byte("data: "), openaiError(f), []byte("\n\n")) },
	}
}

// responsesFailed ends a stream with an error of the request.
func responsesFailed(f Failure) []byte {
	type detail struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	type response struct {
		Object string `json:"object"`
		Status string `json:"status"`
		Error  detail `json:"error"`
	}
	return slices.Concat([]byte("event: response.failed\ndata: "), encoded(struct {
		Type     string   `json:"type"`
		Response response `json:"response"`
	}{"response.failed", response{"response", "failed", detail{"invalid_prompt", f.Message}}}), []byte("\n\n"))
}

func responsesTurn(model bool, text string) string {
	if model {
		return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	return `{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}`
}

func chatTurn(model bool, text string) string {
	if model {
		return `{"role":"assistant","content":"` + text + `"}`
	}
	return `{"role":"user","content":"` + text + `"}`
}

// placeInMessages is in the first message where that is the system's, because many servers of models take one such message
// and no more, and a message of its own otherwise.
func placeInMessages(r Request) (place, error) {
	list := jsontext.Value(r.body[r.system.from:r.system.to])
	if r.system == (span{}) || list.Kind() != '[' {
		return place{}, errors.New(`"messages" of the request is not a list`)
	}
	start := span{r.system.from + 1, r.system.from + 1}
	first := place{start, `{"role":"system","content":"`, `"}` + comma(list)}
	at := 1 + bytes.IndexFunc(list[1:], func(c rune) bool { return c > ' ' })
	if list[at] != '{' {
		return first, nil
	}
	role, _, content := r.message(span{r.system.from + at, r.system.to})
	if role != "system" && role != "developer" || content == (span{}) {
		return first, nil
	}
	return r.placeBefore(content, "messages[0].content")
}

// openaiModels is the list of https://platform.openai.com/docs/api-reference/models.
func openaiModels(names []string) []byte {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, name := range names {
		list.Data = append(list.Data, model{ID: name, Object: "model", OwnedBy: "tidewaiter"})
	}
	return encoded(list)
}

// openaiKinds are the types of errors by status; any other is a server_error.
// https://platform.openai.com/docs/guides/error-codes
var openaiKinds = map[int]string{
	400: "invalid_request_error", 401: "invalid_request_error", 403: "invalid_request_error", 404: "invalid_request_error",
	413: "invalid_request_error", 415: "invalid_request_error", 422: "invalid_request_error", 429: "rate_limit_exceeded",
}

func openaiError(f Failure) []byte {
	type detail struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   any    `json:"param"`
		Code    any    `json:"code"`
	}
	kind := openaiKinds[f.Status]
	if kind == "" {
		kind = "server_error"
	}
	return encoded(struct {
		Error detail `json:"error"`
	}{detail{Message: f.Message, Type: kind}})
}

// encoded is a value of texts and numbers as JSON, which cannot fail.
func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return data
}
