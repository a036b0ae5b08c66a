// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// gemini is the Gemini API. The path names the model, and each member has two spellings, as in JSON of protocol buffers. A stream is one of
// server-sent events: the API also has one that is a JSON list, which comes without alt=sse and is not served.
// https://ai.google.dev/api/generate-content
func gemini() Dialect {
	return Dialect{
		Name: "gemini", Prefix: "/gemini",
		Endpoints: []Endpoint{
			{Method: "POST", Path: "/v1beta/models/{model}:streamGenerateContent", Kind: Generate, Streams: true, Parameter: "alt", Value: "sse"},
			{Method: "POST", Path: "/v1beta/models/{model}:generateContent", Kind: Generate},
			// It counts only the contents, and refuses a request that also has a system instruction.
			{Method: "POST", Path: "/v1beta/models/{model}:countTokens", Kind: Measure, Plain: true},
			{Method: "GET", Path: "/v1beta/models", Kind: List},
		},
		// Those of the official clients. x-goog-user-project says who pays, and stays behind.
		Headers:   []string{"x-goog-api-client", "x-server-timeout"},
		Key:       func(key string) (name, value string) { return "X-Goog-Api-Key", key },
		System:    "systemInstruction",
		History:   "contents",
		choice:    "toolConfig",
		canonical: geminiName,
		wall:      geminiWall,
		// https://ai.google.dev/api/generate-content#generationconfig
		limits:  limits{most: [][]string{{"generationConfig", "maxOutputTokens"}}, choices: []string{"generationConfig", "candidateCount"}},
		inPath:  true,
		message: readGemini,
		tools:   geminiResults,
		behind:  behindContent,
		noTools: `{"functionCallingConfig":{"mode":"NONE"}}`,
		turn:    geminiTurn,
		place:   placeInInstruction,
		Answer:  func() conversation.Decoder { return &geminiAnswer{} },
		retext:  func(text string) retexter { return &geminiRetext{text: text} },
		Models:  geminiModels,
		Error:   geminiError,
		Broken:  func(f Failure) []byte { return slices.Concat([]byte("data: "), geminiError(f), []byte("\n\n")) },
	}
}

// geminiName is the one spelling by which a member is known: system_instruction is systemInstruction.
// https://protobuf.dev/programming-guides/json/
func geminiName(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	var b strings.Builder
	up := false
	for _, c := range []byte(name) {
		switch {
		case c == '_':
			up = true
			continue
		case up && c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		up = false
		b.WriteByte(c)
	}
	return b.String()
}

func geminiTurn(model bool, text string) string {
	if model {
		return `{"role":"model","parts":[{"text":"` + text + `"}]}`
	}
	return `{"role":"user","parts":[{"text":"` + text + `"}]}`
}

// errInstruction says that nothing can be put before the system instruction.
var errInstruction = errors.New(`"systemInstruction" of the request is not an object with a list of parts`)

// placeInInstruction is before the first part of the system instruction.
func placeInInstruction(r Request) (place, error) {
	const before, after = `{"text":"`, `"}`
	if r.system == (span{}) {
		return place{span{r.open, r.open}, `"systemInstruction":{"parts":[` + before, after + "]},"}, nil // a request has contents, so something follows
	}
	value := jsontext.Value(r.body[r.system.from:r.system.to])
	switch value.Kind() {
	case 'n':
		return place{r.system, `{"parts":[` + before, after + "]}"}, nil
	case '{':
	default:
		return place{}, errInstruction
	}
	parts, members := r.partsOf(r.system)
	start := span{parts.from + 1, parts.from + 1}
	switch {
	case parts == (span{}):
		head := span{r.system.from + 1, r.system.from + 1}
		follows := ","
		if members == 0 {
			follows = ""
		}
		return place{head, `"parts":[` + before, after + "]" + follows}, nil
	case r.body[parts.from] == '[':
		return place{start, before, after + comma(r.body[parts.from:parts.to])}, nil
	default:
		return place{}, errInstruction
	}
}

// partsOf an entry: where the list stands, and how many members the entry has.
func (r Request) partsOf(entry span) (parts span, members int) {
	if r.body[entry.from] != '{' {
		return span{}, 0
	}
	for member, at := range membersAt(r.body, entry.from) {
		if members++; member == "parts" {
			parts = at
		}
	}
	return parts, members
}

// behindContent is a content of its own, of the user: the parts of one that answers calls are as many as the calls
// (https://ai.google.dev/gemini-api/docs/function-calling).
func behindContent(r Request, entry span, text string) ([]place, error) {
	if role, _, _ := r.message(entry); role == geminiModel {
		return nil, errModel
	}
	return []place{{span{entry.to, entry.to}, "," + geminiTurn(false, text), ""}}, nil
}

// geminiModels is a page of https://ai.google.dev/api/models.
func geminiModels(names []string) []byte {
	type model struct {
		Name        string   `json:"name"`
		DisplayName string   `json:"displayName"`
		Methods     []string `json:"supportedGenerationMethods"`
	}
	page := struct {
		Models []model `json:"models"`
	}{Models: []model{}}
	for _, name := range names {
		page.Models = append(page.Models, model{"models/" + name, name, []string{"generateContent", "countTokens"}})
	}
	return encoded(page)
}

// geminiStatuses are the codes of errors by status of HTTP; any other is INTERNAL.
// https://ai.google.dev/gemini-api/docs/troubleshooting
var geminiStatuses = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 413: "INVALID_ARGUMENT", 415: "INVALID_ARGUMENT",
	429: "RESOURCE_EXHAUSTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func geminiError(f Failure) []byte {
	type detail struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	}
	status := geminiStatuses[f.Status]
	if status == "" {
		status = "INTERNAL"
	}
	return encoded(struct {
		Error detail `json:"error"`
	}{detail{f.Status, f.Message, status}})
}
