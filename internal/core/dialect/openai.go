// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"slices"
)

// openaiPrefix is where both dialects of OpenAI are: their clients have one base URL for all.
const openaiPrefix = "/openai"

// openaiHeaders are those of the official clients, of Codex and of opencode.
func openaiHeaders() []string {
	return []string{"openai-", "x-stainless-", "x-client-request-id", "originator", "session-id", "thread-id", "x-codex-", "x-session-"}
}

func openaiKey(key string) (name, value string) { return "Authorization", "Bearer " + key }

// openaiResponses is the Responses API, as server-sent events; its transport over WebSocket is not served, and clients fall
// back from it. https://platform.openai.com/docs/api-reference/responses
func openaiResponses() Dialect {
	return Dialect{
		Name: "openai-responses", Prefix: openaiPrefix,
		Endpoints: []Endpoint{
			{"POST", "/v1/responses", Generate},
			{"POST", "/v1/responses/compact", Generate},
			{"POST", "/v1/responses/input_tokens", Measure},
		},
		Headers: openaiHeaders(), Key: openaiKey, Models: openaiModels, Error: openaiError,
		Broken: func(f Failure) []byte {
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
			{"POST", "/v1/chat/completions", Generate},
			{"GET", "/v1/models", List},
		},
		Headers: openaiHeaders(), Key: openaiKey, Models: openaiModels, Error: openaiError,
		Broken: func(f Failure) []byte { return slices.Concat([]byte("data: "), openaiError(f), []byte("\n\n")) },
	}
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
