// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import "encoding/json"

type (
	responsesText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	responsesMessage struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content []responsesText `json:"content"`
	}
	responsesCall struct {
		Type      string `json:"type"`
		ID        string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	responsesResult struct {
		Type   string `json:"type"`
		ID     string `json:"call_id"`
		Output string `json:"output"`
	}
	responsesTool struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}
	responsesChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
)

// responsesRequest is the body of https://platform.openai.com/docs/api-reference/responses/create. The provider keeps nothing
// of the conversation: the next request may reach another one.
func responsesRequest(r Request) any {
	body := struct {
		Model        string           `json:"model"`
		Stream       bool             `json:"stream"`
		Store        bool             `json:"store"`
		Instructions string           `json:"instructions"`
		Tools        []responsesTool  `json:"tools"`
		Choice       *responsesChoice `json:"tool_choice,omitempty"`
		Input        []any            `json:"input"`
	}{Model: Model, Stream: true, Instructions: r.System}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, responsesTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.parameters()})
	}
	if r.Force != "" {
		body.Choice = &responsesChoice{"function", r.Force}
	}
	for _, m := range r.Messages {
		body.Input = append(body.Input, responsesItems(m)...)
	}
	return body
}

// responsesItems of a message.
func responsesItems(m Message) []any {
	var said []any
	if m.Said != nil && json.Unmarshal(m.Said, &said) == nil {
		return said
	}
	var items []any
	for _, result := range m.Results {
		items = append(items, responsesResult{"function_call_output", result.ID, failing(result)})
	}
	if m.Text != "" {
		role, kind := "user", "input_text"
		if m.Model {
			role, kind = "assistant", "output_text"
		}
		items = append(items, responsesMessage{"message", role, []responsesText{{kind, m.Text}}})
	}
	for _, c := range m.Calls {
		items = append(items, responsesCall{"function_call", c.ID, c.Name, string(c.Arguments)})
	}
	return items
}

// failing is the text of a result in dialects that have no other word for a failure.
func failing(r Result) string {
	if r.Failed {
		return "Error: " + r.Text
	}
	return r.Text
}

// responsesEcho keeps the items of an answer.
type responsesEcho struct{ items []json.RawMessage }

func (e *responsesEcho) event(data []byte) {
	var event struct {
		Type string                     `json:"type"`
		Item map[string]json.RawMessage `json:"item"`
	}
	if json.Unmarshal(data, &event) == nil && event.Type == "response.output_item.done" {
		e.keep(event.Item)
	}
}

func (e *responsesEcho) whole(body []byte) {
	var response struct {
		Output []map[string]json.RawMessage `json:"output"`
	}
	if json.Unmarshal(body, &response) != nil {
		return
	}
	for _, item := range response.Output {
		e.keep(item)
	}
}

// keep an item, without the names that it has in a store where nothing is stored. A thought that the provider keeps for itself is
// not taken back.
func (e *responsesEcho) keep(item map[string]json.RawMessage) {
	switch text(item["type"]) {
	case "message":
	case "function_call":
		if !object([]byte(text(item["arguments"]))) {
			item["arguments"] = encoded("{}")
		}
	case "reasoning":
		if text(item["encrypted_content"]) == "" {
			return
		}
	default: // nothing else was offered
		return
	}
	if len(e.items) == maxParts {
		return
	}
	delete(item, "id")
	delete(item, "status")
	e.items = append(e.items, encoded(item))
}

func (e *responsesEcho) said() json.RawMessage {
	if len(e.items) == 0 {
		return nil
	}
	return encoded(e.items)
}
