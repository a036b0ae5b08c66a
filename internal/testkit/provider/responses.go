// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// responses is the Responses API of OpenAI.
type responses struct{}

func (responses) serves(r *http.Request) bool { return r.URL.Path == "/v1/responses" }

func (responses) key(r *http.Request) string { return bearer(r) }

func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// item of an input or an output.
type item struct {
	Type      string `json:"type"`
	Role      string `json:"role"`
	Content   blocks `json:"content"`
	Arguments string `json:"arguments"`
	Output    blocks `json:"output"`
	CallID    string `json:"call_id"`
}

func (responses) read(_ *http.Request, body []byte) (*conversation, any, error) {
	var request struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []struct {
			Name  string `json:"name"`
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"tools"`
		ToolChoice any `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, nil, err
	}
	if request.Model == "" || len(request.Input) == 0 {
		return nil, nil, errors.New("model and input are required")
	}
	c := &conversation{id: rand.Text()[:12], model: request.Model, streamed: request.Stream, bare: request.ToolChoice == none, size: len(body), texts: []string{"", request.Instructions}}
	for _, t := range request.Tools {
		if len(t.Tools) == 0 {
			c.tools = append(c.tools, t.Name)
		}
		for _, inner := range t.Tools {
			c.tools = append(c.tools, t.Name+namespaced+inner.Name)
		}
	}
	items := make([]item, 1)
	into := any(&items)
	if request.Input[0] == '"' { // a text alone
		into = &items[0].Content
	}
	if err := json.Unmarshal(request.Input, into); err != nil {
		return nil, nil, err
	}
	speaks := false // the model does, in the item before
	for _, i := range items {
		said := i.Role == "assistant" || i.Type == "function_call" || i.Type == "reasoning"
		if said && !speaks {
			c.turns++
		}
		speaks = said
		switch i.Type {
		case "function_call":
			c.calls = append(c.calls, i.CallID)
		case "function_call_output":
			c.results = append(c.results, i.CallID)
		}
		c.texts = append(append(append(c.texts, i.Content.texts()...), i.Arguments), i.Output.texts()...)
	}
	return c, nil, nil
}

func (responses) fail(w http.ResponseWriter, status int, message string) {
	openaiError(w, status, message)
}

// openaiError is the form of both APIs.
func openaiError(w http.ResponseWriter, status int, message string) {
	kinds := map[int]string{400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error", 429: "rate_limit_exceeded"}
	kind := kinds[status]
	if kind == "" {
		kind = "server_error"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-ID", "req_scripted")
	w.WriteHeader(status)
	_, _ = w.Write(encode(object{"error": object{"message": message, "type": kind, "param": nil, "code": nil}}))
}

func (responses) answer(w *stream, c *conversation, t Turn) {
	id := fmt.Sprintf("resp_%s", c.id)
	var output []object
	if t.Text != "" {
		output = append(output, object{"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": t.Text, "annotations": []any{}}}})
	}
	for i, call := range t.calls(c) {
		item := object{"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", id, i), "call_id": fmt.Sprintf("call_%s_%d", c.id, i), "name": call.Name,
			"arguments": string(call.Input), "status": "completed"}
		if group, name, found := strings.Cut(call.Name, namespaced); found {
			item["namespace"], item["name"] = group, name
		}
		output = append(output, item)
	}
	usage := object{
		"input_tokens": c.size / 4, "output_tokens": t.output(), "total_tokens": c.size/4 + t.output(),
		"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
	}
	response := object{"id": id, "object": "response", "created_at": 1_700_000_000, "status": "completed", "model": c.model, "output": output, "usage": usage}
	w.Header().Set("X-Request-ID", "req_scripted")
	if !c.streamed {
		w.json(http.StatusOK, response)
		return
	}
	sequence := 0
	event := func(kind string, fields object) {
		fields["type"], fields["sequence_number"] = kind, sequence
		sequence++
		w.event(kind, fields)
	}
	event("response.created", object{"response": object{"id": id, "object": "response", "created_at": 1_700_000_000, "status": "in_progress", "model": c.model, "output": []any{}}})
	for i, item := range output {
		event("response.output_item.added", object{"output_index": i, "item": item})
		if item["type"] == "message" {
			for _, word := range strings.SplitAfter(t.Text, " ") {
				event("response.output_text.delta", object{"output_index": i, "content_index": 0, "item_id": item["id"], "delta": word})
			}
		}
		event("response.output_item.done", object{"output_index": i, "item": item})
	}
	event("response.completed", object{"response": response})
}
