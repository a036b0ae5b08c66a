// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// gemini is the Gemini API.
type gemini struct{}

const geminiModels = "/v1beta/models"

func (gemini) serves(r *http.Request) bool {
	return r.URL.Path == geminiModels || strings.HasPrefix(r.URL.Path, geminiModels+"/")
}

func (gemini) key(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") }

// geminiContent is one of a conversation.
type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought"`
		Call    *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCall"`
		Result *struct {
			ID       string          `json:"id"`
			Name     string          `json:"name"`
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
		Signature string `json:"thoughtSignature"`
	} `json:"parts"`
}

func (gemini) read(r *http.Request, body []byte) (*conversation, any, error) {
	if r.URL.Path == geminiModels {
		return nil, object{"models": []any{object{"name": "models/scripted-1", "displayName": "Scripted", "supportedGenerationMethods": []string{"generateContent", "countTokens"}}}}, nil
	}
	model, method, named := strings.Cut(strings.TrimPrefix(r.URL.Path, geminiModels+"/"), ":")
	if !named || model == "" {
		return nil, nil, fmt.Errorf("no method in %s", r.URL.Path)
	}
	var request struct {
		System   geminiContent   `json:"systemInstruction"`
		Contents []geminiContent `json:"contents"`
		Tools    []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Config struct {
			Calling struct {
				Mode string `json:"mode"`
			} `json:"functionCallingConfig"`
		} `json:"toolConfig"`
		Generation struct {
			Most int `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, nil, err
	}
	if len(request.Contents) == 0 {
		return nil, nil, errors.New("contents are not specified")
	}
	switch method {
	case "countTokens":
		if request.System.Parts != nil {
			return nil, nil, errors.New(`Invalid JSON payload received. Unknown name "systemInstruction": Cannot find field.`)
		}
		return nil, object{"totalTokens": len(body) / 4}, nil
	case "generateContent":
	case "streamGenerateContent":
		if r.URL.Query().Get("alt") != "sse" {
			return nil, nil, errors.New("the script plays no stream that is a list")
		}
	default:
		return nil, nil, fmt.Errorf("no method %q", method)
	}
	c := &conversation{
		uncommented: true, // https://github.com/googleapis/js-genai/blob/main/src/_api_client.ts, processStreamResponse: a comment is an error
		most:        request.Generation.Most,
		id:          rand.Text()[:12], model: model, streamed: method == "streamGenerateContent", bare: request.Config.Calling.Mode == "NONE", forced: request.Config.Calling.Mode == "ANY", size: len(body), texts: []string{request.System.text()},
	}
	current := 0 // the first content of the current turn: that of the user behind which only calls and results follow
	for i, content := range request.Contents {
		if content.Role != "model" && content.text() != "" {
			current = i
		}
	}
	for i, content := range request.Contents {
		if err := content.add(c, i > current); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range request.Tools {
		for _, f := range t.Functions {
			c.tools = append(c.tools, f.Name)
		}
	}
	return c, nil, nil
}

func (m geminiContent) text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// add a content. In the current turn the first call of a content must come back with the signature that it had: models since Gemini 3 refuse it
// otherwise (https://ai.google.dev/gemini-api/docs/thought-signatures). Clients that go on with a session have none of earlier turns.
func (m geminiContent) add(c *conversation, current bool) error {
	if m.Role == "model" {
		c.turns++
	}
	signed := false
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			if signed = signed || p.Signature != ""; !signed && current {
				return fmt.Errorf("Function call %s is missing a thought_signature", p.Call.Name)
			}
			c.texts, c.calls = append(c.texts, string(p.Call.Args)), append(c.calls, p.Call.ID)
		case p.Result != nil:
			c.texts, c.results = append(c.texts, string(p.Result.Response)), append(c.results, p.Result.ID)
		case !p.Thought:
			c.texts = append(c.texts, p.Text)
		}
	}
	return nil
}

func (gemini) fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(object{"error": object{"code": status, "message": message, "status": map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}[status]}}))
}

func (gemini) answer(w *stream, c *conversation, t Turn) {
	var calls []any
	for i, call := range t.calls(c) {
		part := object{"functionCall": object{"id": fmt.Sprintf("call_%s_%d", c.id, i), "name": call.Name, "args": call.Input}}
		if i == 0 { // as real models do where several are called at once
			part["thoughtSignature"] = "c2lnbmVk"
		}
		calls = append(calls, part)
	}
	u := t.used(c)
	prompt := u.input + u.read + u.written + u.writtenHour // Gemini bills no writing
	usage := object{
		"promptTokenCount": prompt, "cachedContentTokenCount": u.read, "candidatesTokenCount": u.output - u.thought, "thoughtsTokenCount": u.thought, "totalTokenCount": prompt + u.output,
	}
	response := func(parts []any, finish string) object {
		candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
		if finish != "" {
			candidate["finishReason"] = finish
		}
		answer := object{"candidates": []any{candidate}, "modelVersion": c.model, "responseId": c.id}
		if !t.has(Uncounted) {
			answer["usageMetadata"] = usage
		}
		return answer
	}
	reason := cmp.Or(t.Stop, "STOP")
	if !c.streamed {
		var parts []any
		if t.Text != "" || len(calls) == 0 {
			parts = append(parts, object{"text": t.Text})
		}
		w.json(http.StatusOK, response(append(parts, calls...), reason))
		return
	}
	w.event("", response([]any{object{"text": "I think.", "thought": true}}, ""))
	for _, word := range strings.SplitAfter(t.Text, " ") {
		if word != "" {
			w.event("", response([]any{object{"text": word}}, ""))
		}
	}
	if len(calls) == 0 {
		calls = []any{object{"text": ""}}
	}
	w.event("", response(calls, reason))
}
