// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
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
	// Encrypted is what the model has thought.
	Encrypted string `json:"encrypted_content"`
}

func (responses) read(_ *http.Request, body []byte) (*conversation, any, error) {
	var request struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Most         int             `json:"max_output_tokens"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []struct {
			Name  string `json:"name"`
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"tools"`
		ToolChoice any             `json:"tool_choice"`
		Parallel   *bool           `json:"parallel_tool_calls"`
		Reasoning  json.RawMessage `json:"reasoning"`
		Include    []string        `json:"include"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, nil, err
	}
	if request.Model == "" || len(request.Input) == 0 {
		return nil, nil, errors.New("model and input are required")
	}
	c := &conversation{most: request.Most, id: rand.Text()[:12], model: request.Model, streamed: request.Stream, bare: request.ToolChoice == none, forced: names(request.ToolChoice), size: len(body), texts: []string{"", request.Instructions},
		thinks: len(request.Reasoning) > 0 && slices.Contains(request.Include, encrypted), single: request.Parallel != nil && !*request.Parallel}
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
	speaks, answer := false, "" // the model does, in the item before; the answer that the last call was in
	for n, i := range items {
		said := i.Role == "assistant" || i.Type == "function_call" || i.Type == "reasoning"
		of := i.CallID[:max(0, strings.LastIndexByte(i.CallID, '_'))]
		if said && !speaks && (i.Type != "function_call" || of != answer) { // some clients put the result of each call behind it
			c.turns++
		}
		if speaks = said; i.Type == "function_call" {
			answer = of
		}
		if i.Type == "reasoning" {
			// https://platform.openai.com/docs/guides/reasoning
			if next := n + 1; next == len(items) || items[next].Role != "assistant" && items[next].Type != "function_call" && items[next].Type != "reasoning" {
				return nil, nil, fmt.Errorf("input[%d]: Item of type 'reasoning' was provided without its required following item", n)
			}
			if i.Encrypted != "" && !unsealed(i.Encrypted) {
				return nil, nil, fmt.Errorf("input[%d]: The encrypted content could not be verified", n)
			}
		}
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

// encrypted is what a request includes that wants to bring back what the model has thought.
const encrypted = "reasoning.encrypted_content"

func (responses) answer(w *stream, c *conversation, t Turn) {
	id := fmt.Sprintf("resp_%s", c.id)
	output := t.items(id, c)
	u := t.used(c)
	input := u.input + u.read + u.written + u.writtenHour
	response := func(status string, output []object) object {
		return object{"id": id, "object": "response", "created_at": 1_700_000_000, "status": status, "model": c.model, "output": output, "error": nil, "incomplete_details": nil, "usage": nil}
	}
	last, kind := response("completed", output), "response.completed"
	if t.Stop != "" {
		last, kind = response("incomplete", output), "response.incomplete"
		last["incomplete_details"] = object{"reason": t.Stop}
	}
	if !t.has(Uncounted) {
		last["usage"] = object{
			"input_tokens": input, "output_tokens": u.output, "total_tokens": input + u.output,
			"input_tokens_details": object{"cached_tokens": u.read}, "output_tokens_details": object{"reasoning_tokens": u.thought},
		}
	}
	w.Header().Set("X-Request-ID", "req_scripted")
	if !c.streamed {
		if t.has(Queues) {
			last = response("queued", []object{})
		}
		w.json(http.StatusOK, last)
		return
	}
	sequence := 0
	event := func(kind string, fields object) {
		fields["sequence_number"] = sequence
		sequence++
		w.typed(kind, fields)
	}
	begin := []string{"response.created", "response.in_progress"}
	if t.has(Queues) {
		begin = []string{"response.created", "response.queued", "response.in_progress"}
	}
	for i, kind := range begin {
		status := "in_progress"
		if i < len(begin)-1 && t.has(Queues) {
			status = "queued"
		}
		event(kind, object{"response": response(status, []object{})})
	}
	if t.has(Unknown) {
		event("response.weather.report", object{"item_id": "x", "text": "sunny"})
	}
	for i, item := range output {
		for _, e := range parts(item) {
			e.fields["output_index"] = i
			event(e.kind, e.fields)
		}
	}
	event(kind, object{"response": last})
}

// items of an answer.
func (t Turn) items(id string, c *conversation) (output []object) {
	if t.Thinking != "" {
		item := object{"type": "reasoning", "id": "rs_" + id, "summary": []any{object{"type": "summary_text", "text": t.Thinking}}, "encrypted_content": sealed(kept + t.Thinking)}
		if t.has(Hides) {
			item["summary"] = []any{}
		}
		output = append(output, item)
	}
	if t.Text != "" {
		output = append(output, object{"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": t.Text, "annotations": []any{}, "logprobs": []any{}}}})
	}
	for i, call := range t.calls(c) {
		item := object{"type": "function_call", "id": numbered("fc", id, i), "call_id": numbered("call", c.id, i), "name": call.Name,
			"arguments": string(call.Input), "status": "completed"}
		if group, name, found := strings.Cut(call.Name, namespaced); found {
			item["namespace"], item["name"] = group, name
		}
		output = append(output, item)
	}
	return output
}

// happening is an event of a stream.
type happening struct {
	kind   string
	fields object
}

// parts are the events in which an item comes.
func parts(item object) (events []happening) {
	add := func(kind string, fields object) {
		if kind != added && kind != done {
			fields["item_id"] = item["id"]
		}
		events = append(events, happening{kind, fields})
	}
	begin := maps.Clone(item)
	switch item["type"] {
	case "message":
		begin["status"], begin["content"] = "in_progress", []any{}
		add(added, object{"item": begin})
		part := item["content"].([]any)[0].(object) //nolint:forcetypeassert // items made it
		text, _ := part["text"].(string)
		add("response.content_part.added", object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}})
		for _, word := range words(text) {
			add("response.output_text.delta", object{"content_index": 0, "delta": word, "logprobs": []any{}})
		}
		add("response.output_text.done", object{"content_index": 0, "text": text, "logprobs": []any{}})
		add("response.content_part.done", object{"content_index": 0, "part": part})
	case "function_call":
		begin["status"], begin["arguments"] = "in_progress", ""
		add(added, object{"item": begin})
		arguments, _ := item["arguments"].(string)
		half := len(arguments) / 2
		for _, part := range []string{arguments[:half], arguments[half:]} {
			add("response.function_call_arguments.delta", object{"delta": part})
		}
		add("response.function_call_arguments.done", object{"arguments": arguments})
	default:
		begin["summary"], begin["encrypted_content"] = []any{}, ""
		add(added, object{"item": begin})
		for i, part := range item["summary"].([]any) { //nolint:forcetypeassert // items made it
			text, _ := part.(object)["text"].(string) //nolint:forcetypeassert // items made it
			add("response.reasoning_summary_part.added", object{"summary_index": i, "part": object{"type": "summary_text", "text": ""}})
			for _, word := range words(text) {
				add("response.reasoning_summary_text.delta", object{"summary_index": i, "delta": word})
			}
			add("response.reasoning_summary_text.done", object{"summary_index": i, "text": text})
			add("response.reasoning_summary_part.done", object{"summary_index": i, "part": part})
		}
	}
	add(done, object{"item": item})
	return events
}

const added, done = "response.output_item.added", "response.output_item.done"
