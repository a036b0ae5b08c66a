// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// anthropic is the Messages API.
// https://docs.claude.com/en/api/messages
func anthropic() Dialect {
	return Dialect{
		Name: "anthropic", Prefix: "/anthropic",
		Endpoints: []Endpoint{
			{Method: "POST", Path: "/v1/messages", Kind: Generate},
			{Method: "POST", Path: "/v1/messages/count_tokens", Kind: Measure},
			{Method: "GET", Path: "/v1/models", Kind: List},
			// Claude Code asks so whether its gateway is there.
			{Method: "HEAD", Path: "", Kind: Probe},
			{Method: "HEAD", Path: "/", Kind: Probe},
		},
		Headers:       slices.Concat([]string{"anthropic-version", "anthropic-beta", "x-app", "x-claude-code-session-id", "x-claude-code-agent-id"}, stainless),
		AnswerHeaders: []string{"anthropic-ratelimit-", "anthropic-version"}, betas: anthropicBetas,
		Query:   []string{"beta", "limit", "after_id", "before_id"},
		Key:     func(key string) (name, value string) { return "X-Api-Key", key },
		System:  "system",
		History: "messages",
		wall:    anthropicWall,
		// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
		limits:  limits{most: [][]string{{"max_tokens"}}, thinking: []string{"thinking", "budget_tokens"}},
		message: readAnthropic,
		tools:   anthropicResults,
		behind:  behindMessage(false),
		choice:  "tool_choice",
		noTools: `{"type":"none"}`,
		turn:    chatTurn,
		place:   func(r Request) (place, error) { return r.placeIn("system") },
		Answer:  func() conversation.Decoder { return &anthropicAnswer{} },
		retext:  func(text string) retexter { return &anthropicRetext{text: text, numbers: map[int]int{}} },
		Models:  anthropicModels,
		Error:   anthropicError,
		Broken: func(f Failure) []byte {
			return slices.Concat([]byte("event: error\ndata: "), anthropicError(f), []byte("\n\n"))
		},
	}
}

// anthropicModels is a page of https://docs.claude.com/en/api/models-list.
func anthropicModels(names []string) []byte {
	type model struct {
		Type        string `json:"type"`
		ID          string `json:"id"`
		DisplayName string `json:"display_name"`
		CreatedAt   string `json:"created_at"`
	}
	page := struct {
		Data    []model `json:"data"`
		HasMore bool    `json:"has_more"`
		FirstID string  `json:"first_id,omitempty"`
		LastID  string  `json:"last_id,omitempty"`
	}{Data: []model{}}
	for i, name := range names {
		if i == 0 {
			page.FirstID = name
		}
		page.LastID = name
		page.Data = append(page.Data, model{Type: "model", ID: name, DisplayName: name, CreatedAt: "1970-01-01T00:00:00Z"})
	}
	return encoded(page)
}

// anthropicKinds are the types of errors by status; any other is an api_error.
// https://docs.claude.com/en/api/errors
var anthropicKinds = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	405: "invalid_request_error", 413: "request_too_large", 415: "invalid_request_error", 422: "invalid_request_error",
	429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}

func anthropicError(f Failure) []byte {
	type details struct {
		Code string `json:"error_code"`
	}
	type detail struct {
		Type    string  `json:"type"`
		Message string  `json:"message"`
		Details details `json:"details,omitzero"`
	}
	kind := anthropicKinds[f.Status]
	if kind == "" {
		kind = "api_error"
	}
	return encoded(struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{kind, f.Message, details{f.Code}}})
}
