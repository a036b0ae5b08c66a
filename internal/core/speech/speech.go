// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package speech is the client's side of each dialect: requests to a model, and its answers. The runtime worker and the watchdog ask models by
// it. Messages of a model go back to it in its own form, with thoughts and signatures, because some models accept no other.
package speech

import (
	"encoding/json"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// Model is the name of the model in every request. The gateway replaces it with the policy's model.
const Model = "primary"

// Tool that a model may call.
type Tool struct {
	Name, Description string
	// Schema of its arguments, a JSON object.
	Schema json.RawMessage
}

// Request to a model.
type Request struct {
	// System is the system prompt.
	System   string
	Tools    []Tool
	Messages []Message
	// Force is the name of the tool that the model has to call; empty where it may choose.
	Force string
	// MaxOutput is the most tokens of the answer, in dialects that have to name it.
	MaxOutput int64
}

// Speech is the client's side of a dialect.
type Speech struct {
	Dialect dialect.Dialect
	// Header that every request has.
	Header map[string]string
	// request gives the body of a request.
	request func(Request) any
	// echo gives what keeps an answer in its own words.
	echo func() echo
}

// speeches of all dialects by their names. A new one is a file and an entry here.
func speeches() map[string]Speech {
	return map[string]Speech{
		"anthropic":        {Header: map[string]string{"Anthropic-Version": anthropicVersion}, request: anthropicRequest, echo: func() echo { return &anthropicEcho{} }},
		"openai-responses": {request: responsesRequest, echo: func() echo { return &responsesEcho{} }},
		"openai-chat":      {request: chatRequest, echo: func() echo { return &chatEcho{} }},
		"gemini":           {request: geminiRequest, echo: func() echo { return &geminiEcho{} }},
	}
}

// Find finds the Speech of a dialect; false if there is none.
func Find(name string) (Speech, bool) {
	d, known := dialect.Find(name)
	s, spoken := speeches()[name]
	s.Dialect = d
	return s, known && spoken
}

// Path of requests for an answer, below the URL of models, with the query that it needs.
func (s Speech) Path() string {
	for _, e := range s.Dialect.Endpoints {
		if e.Kind != dialect.Generate || e.Side {
			continue
		}
		path := s.Dialect.Prefix + strings.ReplaceAll(e.Path, dialect.ModelPlace, Model)
		if e.Parameter != "" {
			path += "?" + e.Parameter + "=" + e.Value
		}
		return path
	}
	return s.Dialect.Prefix
}

// Body of a request, as JSON.
func (s Speech) Body(r Request) ([]byte, error) { return json.Marshal(s.request(r)) }

// parameters of a tool as all providers take them: some refuse an object without properties.
func (t Tool) parameters() json.RawMessage {
	var schema map[string]json.RawMessage
	if json.Unmarshal(t.Schema, &schema) != nil || schema == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if schema["properties"] != nil {
		return t.Schema
	}
	schema["properties"] = json.RawMessage(`{}`)
	return encoded(schema)
}

// encoded is a value of texts and JSON as JSON, which cannot fail.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}

// object says whether a text is a JSON object.
func object(text []byte) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(text, &o) == nil && o != nil
}
