// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"strconv"
	"strings"

	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// geminiModel is the role of what the model says.
const geminiModel = "model"

// geminiPart is a part of https://ai.google.dev/api/caching#Part, in both spellings.
type geminiPart struct {
	Text    *string      `json:"text"`
	Thought bool         `json:"thought"`
	Call    *geminiCall  `json:"functionCall"`
	Called  *geminiCall  `json:"function_call"`
	Result  *geminiReply `json:"functionResponse"`
	Replied *geminiReply `json:"function_response"`
	// Code that the provider runs.
	Code lenient[*struct{}] `json:"executableCode"`
	// Signature of a thought. It has to come back as it is.
	Signature string `json:"thoughtSignature"`
	Signed    string `json:"thought_signature"`
}

type geminiCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiReply struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	// Parts are what else the tool has given, such as pictures. https://ai.google.dev/api/caching#FunctionResponsePart
	Parts json.RawMessage `json:"parts"`
}

func (p geminiPart) call() *geminiCall   { return cmp.Or(p.Call, p.Called) }
func (p geminiPart) reply() *geminiReply { return cmp.Or(p.Result, p.Replied) }

// said is what the part says to people.
func (p geminiPart) said() string {
	if p.Text == nil || p.Thought {
		return ""
	}
	return *p.Text
}

// runs says that the part is code which the provider runs.
func (p geminiPart) runs() bool { return p.Code.v != nil }

// signed says that the part has a signature.
func (p geminiPart) signed() bool { return p.Signature != "" || p.Signed != "" }

// geminiParts are a list of parts, of which those are left out that are strange. The API also takes one part without a list.
type geminiParts []geminiPart

// UnmarshalJSON implements json.Unmarshaler.
func (p *geminiParts) UnmarshalJSON(data []byte) error {
	*p = geminiPartsOf(data)
	return nil
}

// geminiPartsOf a value, whose bytes the parts keep.
func geminiPartsOf(value []byte) (parts geminiParts) {
	if value[0] != '[' {
		return geminiParts{geminiPartOf(value)}
	}
	for element := range plainElements(value) {
		parts = append(parts, geminiPartOf(element))
	}
	return parts
}

func geminiPartOf(value []byte) (p geminiPart) {
	if plainMembers(value, p.plainMember) {
		return p
	}
	p = geminiPart{}
	if json.Unmarshal(value, &p) != nil {
		return geminiPart{}
	}
	return p
}

func (p *geminiPart) plainMember(name string, value []byte) bool {
	switch name {
	case "text":
		p.Text = new(string)
		return plainTo(p.Text, value)
	case "functionCall":
		p.Call = &geminiCall{}
		return plainMembers(value, p.Call.plainMember)
	case "functionResponse":
		p.Result = &geminiReply{}
		return plainMembers(value, p.Result.plainMember)
	case "thoughtSignature":
		return plainTo(&p.Signature, value)
	}
	return plainNames{
		"text", "thought", "functionCall", "function_call", "functionResponse", "function_response", "executableCode", "thoughtSignature", "thought_signature",
	}.other(name)
}

func (c *geminiCall) plainMember(name string, value []byte) bool {
	switch name {
	case "id":
		return plainTo(&c.ID, value)
	case "name":
		return plainTo(&c.Name, value)
	case "args":
		c.Args = value
		return true
	}
	return plainNames{"id", "name", "args"}.other(name)
}

func (r *geminiReply) plainMember(name string, value []byte) bool {
	switch name {
	case "id":
		return plainTo(&r.ID, value)
	case "name":
		return plainTo(&r.Name, value)
	case "response":
		r.Response = value
		return true
	case "parts":
		r.Parts = value
		return true
	}
	return plainNames{"id", "name", "response", "parts"}.other(name)
}

// geminiIDs names calls and their results that have no ID: models before Gemini 3 give none, and the results of one content stand in the order
// of its calls. Some clients give an ID of their own only to the result: that one is known by its name
// (https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/core/turn.ts, handlePendingFunctionCall).
type geminiIDs map[string]int

// of a call or a result: its own, or its name and its number among the calls of that name in one content.
func (n geminiIDs) of(id, name string) string {
	if id != "" {
		return id
	}
	number := n[name]
	n[name]++
	return name + "#" + strconv.Itoa(number)
}

type geminiContent struct {
	Role  string      `json:"role"`
	Parts geminiParts `json:"parts"`
}

func (c *geminiContent) plainMember(name string, value []byte) bool {
	switch name {
	case "role":
		return plainTo(&c.Role, value)
	case "parts":
		c.Parts = geminiPartsOf(value)
		return true
	}
	return plainNames{"role", "parts"}.other(name)
}

// readGemini reads a content of https://ai.google.dev/api/caching#Content.
func readGemini(entry []byte) conversation.Message {
	var e geminiContent
	if !plainMembers(entry, e.plainMember) {
		e = geminiContent{}
		if json.Unmarshal(entry, &e) != nil {
			return strange(conversation.RoleUser, entry)
		}
	}
	m := conversation.Message{Role: conversation.RoleUser}
	if e.Role == geminiModel {
		m.Role = conversation.RoleModel
	}
	var text strings.Builder
	calls, results, given := geminiIDs{}, geminiIDs{}, map[conversation.Result]bool{}
	for _, p := range e.Parts {
		call, reply := p.call(), p.reply()
		switch {
		case call != nil && len(m.Calls) < conversation.MaxParts:
			m.Calls = append(m.Calls, callOf(calls.of(call.ID, call.Name), call.Name, call.Args))
		case reply != nil && len(m.Results) < conversation.MaxParts:
			said, failed := replied(reply.Response)
			r := conversation.Result{ID: results.of(reply.ID, reply.Name), Name: reply.Name, Text: conversation.WholeOf(unnumbered(said)), Failed: failed}
			r.Text.Other = pictures(reply.Parts)
			if !given[r] { // clients that continue a session give some twice
				given[r], m.Results = true, append(m.Results, r)
			}
		case p.Thought: // clients leave old ones out
		case p.Text != nil:
			if text.Len() > 0 && m.Role == conversation.RoleUser { // a model's text comes in pieces
				text.WriteByte('\n')
			}
			text.WriteString(*p.Text)
		case !p.signed():
			m.Images++
		}
	}
	m.Text = conversation.QuoteOf(text.String())
	if m.Images > 0 {
		m.Other = conversation.Sum([]byte(strconv.Itoa(m.Images)))
	}
	return m
}

// pictures is the digest of the other content of a tool's response; zero if there is none.
func pictures(parts json.RawMessage) conversation.Digest {
	type blob struct {
		Data string `json:"data"`
		URI  string `json:"fileUri"`
	}
	var list []struct {
		Inline *blob `json:"inlineData"`
		File   *blob `json:"fileData"`
	}
	if len(parts) == 0 {
		return conversation.Digest{}
	}
	if json.Unmarshal(parts, &list) != nil {
		return conversation.Sum(parts)
	}
	var all [][]byte
	for _, p := range list {
		for _, b := range []*blob{p.Inline, p.File} {
			if b != nil {
				all = append(all, []byte(b.Data), []byte(b.URI))
			}
		}
	}
	if len(all) == 0 {
		return conversation.Digest{}
	}
	return conversation.Sum(all...)
}

// replied is what a tool has said: its output or its error, and all of the response where it has neither.
// https://ai.google.dev/api/caching#FunctionResponse
func replied(response json.RawMessage) (text string, failed bool) {
	if output := ""; plainMembers(response, func(name string, value []byte) bool { return name == "output" && plainTo(&output, value) }) && output != "" {
		return output, false
	}
	var r struct {
		Output *string         `json:"output"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(response, &r) != nil {
		return string(response), false
	}
	if failed = len(r.Error) > 0 && string(r.Error) != "null"; failed {
		if json.Unmarshal(r.Error, &text) == nil {
			return text, true
		}
		return string(r.Error), true
	}
	if r.Output != nil {
		return *r.Output, false
	}
	return string(response), false
}
