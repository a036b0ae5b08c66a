// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"
)

// gemini is the official client, which names itself by its own header; the watchdog's token is beside it.
func gemini(t *testing.T, url, token string) *genai.Client {
	t.Helper()
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url + "/gemini", Headers: http.Header{"Authorization": {"Bearer " + token}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestGeminiSDK asks everything that the dialect has.
func TestGeminiSDK(t *testing.T) {
	url := gateway(t)
	client := gemini(t, url, "login")
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "shell"}}}}}
	check := func(text string, calls []*genai.FunctionCall, last *genai.GenerateContentResponse) {
		t.Helper()
		if text != "one two three" || len(calls) != 1 || calls[0].Name != "shell" || calls[0].Args["command"] != "make" || last.Candidates[0].FinishReason != genai.FinishReasonStop ||
			last.UsageMetadata.CandidatesTokenCount != 10 || last.ModelVersion != "large" {
			t.Errorf("%q, %+v, %+v", text, calls, last)
		}
	}
	r, err := client.Models.GenerateContent(t.Context(), "whatever", genai.Text(sdkPrompt), config)
	if err != nil {
		t.Fatal(err)
	}
	check(r.Text(), r.FunctionCalls(), r)
	var text string
	var calls []*genai.FunctionCall
	var last *genai.GenerateContentResponse
	for part, err := range client.Models.GenerateContentStream(t.Context(), "whatever", genai.Text(sdkPrompt), config) {
		if err != nil {
			t.Fatal(err)
		}
		text, calls, last = text+part.Text(), append(calls, part.FunctionCalls()...), part
	}
	check(text, calls, last)
	var broken error
	for _, err := range client.Models.GenerateContentStream(t.Context(), "whatever", genai.Text(cutPrompt), config) {
		broken = errors.Join(broken, err)
	}
	if broken == nil || !strings.Contains(broken.Error(), "broke off") {
		t.Errorf("a stream that breaks off: %v", broken)
	}
	if count, err := client.Models.CountTokens(t.Context(), "whatever", genai.Text("hello"), nil); err != nil || count.TotalTokens == 0 {
		t.Errorf("tokens %+v, %v", count, err)
	}
	if list, err := client.Models.List(t.Context(), nil); err != nil || len(list.Items) != 1 || list.Items[0].Name != "models/large" {
		t.Errorf("models %+v, %v", list, err)
	}
	_, err = gemini(t, url, "stranger").Models.GenerateContent(t.Context(), "whatever", genai.Text(sdkPrompt), config)
	if e, is := errors.AsType[genai.APIError](err); !is || e.Code != http.StatusUnauthorized || e.Status != "UNAUTHENTICATED" {
		t.Errorf("a stranger: %v", err)
	}
}
