// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"encoding/json"
	"strings"
)

type (
	geminiText struct {
		Text string `json:"text"`
	}
	geminiCalled struct {
		ID   string          `json:"id,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	geminiReply struct {
		ID       string            `json:"id,omitempty"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	}
	geminiPart struct {
		Call *geminiCalled `json:"functionCall,omitempty"`
		// Signature of a thought that there was none of: https://ai.google.dev/gemini-api/docs/thought-signatures
		Signature string       `json:"thoughtSignature,omitempty"`
		Result    *geminiReply `json:"functionResponse,omitempty"`
	}
	geminiContent struct {
		Role  string `json:"role,omitempty"`
		Parts []any  `json:"parts"`
	}
	geminiFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"parametersJsonSchema"`
	}
	// https://ai.google.dev/gemini-api/docs/function-calling#function_calling_modes
	geminiCalling struct {
		Mode  string   `json:"mode"`
		Names []string `json:"allowedFunctionNames"`
	}
	geminiChoice struct {
		Calling geminiCalling `json:"functionCallingConfig"`
	}
	geminiTool struct {
		Functions []geminiFunction `json:"functionDeclarations"`
	}
)

// unsigned stands for the signature of a call that is said in other words than the model's.
const unsigned = "skip_thought_signature_validator"

// geminiRequest is the body of https://ai.google.dev/api/generate-content.
func geminiRequest(r Request) any {
	body := struct {
		System   geminiContent `json:"systemInstruction"`
		Tools    []geminiTool  `json:"tools,omitempty"`
		Choice   *geminiChoice `json:"toolConfig,omitempty"`
		Contents []any         `json:"contents"`
	}{System: geminiContent{Parts: []any{geminiText{r.System}}}}
	if len(r.Tools) > 0 {
		body.Tools = make([]geminiTool, 1)
	}
	for _, t := range r.Tools {
		body.Tools[0].Functions = append(body.Tools[0].Functions, geminiFunction{t.Name, t.Description, t.parameters()})
	}
	if r.Force != "" {
		body.Choice = &geminiChoice{geminiCalling{"ANY", []string{r.Force}}}
	}
	names := map[string]string{} // by the IDs of calls
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		body.Contents = append(body.Contents, geminiMessage(m, names))
	}
	return body
}

// geminiMessage is a content. Results stand together in one, in the order of their calls.
func geminiMessage(m Message, names map[string]string) any {
	if m.Said != nil {
		return m.Said
	}
	content := geminiContent{Role: "user"}
	for _, result := range m.Results {
		member := "output"
		if result.Failed {
			member = "error"
		}
		content.Parts = append(content.Parts, geminiPart{Result: &geminiReply{ID: geminiID(result.ID), Name: names[result.ID], Response: map[string]string{member: result.Text}}})
	}
	if m.Text != "" {
		content.Parts = append(content.Parts, geminiText{m.Text})
	}
	if m.Model {
		content.Role = "model"
	}
	for i, c := range m.Calls {
		part := geminiPart{Call: &geminiCalled{geminiID(c.ID), c.Name, c.Arguments}}
		if i == 0 {
			part.Signature = unsigned
		}
		content.Parts = append(content.Parts, part)
	}
	return content
}

// geminiID is the ID that the model has given; one with a number sign is the dialect's, for a call without.
func geminiID(id string) string {
	if strings.Contains(id, "#") {
		return ""
	}
	return id
}

// geminiEcho keeps the parts of an answer, with their signatures. Text that comes in pieces is one part.
type geminiEcho struct{ parts []map[string]any }

func (e *geminiEcho) event(data []byte) {
	var response struct {
		Candidates []struct {
			Index   int `json:"index"`
			Content struct {
				Parts []map[string]any `json:"parts"`
			} `json:"content"`
		} `json:"candidates"`
	}
	if json.Unmarshal(data, &response) != nil {
		return
	}
	for _, c := range response.Candidates {
		if c.Index != 0 {
			continue
		}
		for _, p := range c.Content.Parts {
			e.add(p)
		}
	}
}

func (e *geminiEcho) whole(body []byte) { e.event(body) }

// add a part, or a piece of one.
func (e *geminiEcho) add(p map[string]any) {
	text, is := p["text"].(string)
	if is && text == "" && len(p) == 1 {
		return
	}
	if is && len(e.parts) > 0 && bare(p) {
		if last := e.parts[len(e.parts)-1]; bare(last) && last["thought"] == p["thought"] {
			if before, is := last["text"].(*longText); is {
				before.WriteString(text)
				return
			}
		}
	}
	if len(e.parts) == maxParts {
		return
	}
	if is {
		long := &longText{}
		long.WriteString(text)
		p["text"] = long
	}
	e.parts = append(e.parts, p)
}

// bare says whether a part has a text, and nothing else but that it is a thought.
func bare(p map[string]any) bool {
	_, thought := p["thought"]
	return len(p) == 1 || thought && len(p) == 2
}

func (e *geminiEcho) said() json.RawMessage {
	if len(e.parts) == 0 {
		return nil
	}
	return encoded(struct {
		Role  string           `json:"role"`
		Parts []map[string]any `json:"parts"`
	}{"model", e.parts})
}
