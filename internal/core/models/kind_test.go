// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// endpointOf is what is asked for an answer below a path.
func endpointOf(path string) dialect.Endpoint {
	return dialect.Endpoint{Method: "POST", Path: path, Kind: dialect.Generate}
}

// TestTarget: where each kind of backend is asked, and with which parameters.
func TestTarget(t *testing.T) {
	const chat, responses, anthropic, gemini = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/{model}:streamGenerateContent"
	dated := map[string]string{"api-version": "2024-10-21"}
	for name, tc := range map[string]struct {
		backend         models.Backend
		endpoint, model string
		streamed        bool
		query           string
		want            string
	}{
		"no kind":                      {models.Backend{}, anthropic, "large", true, "beta=true", "/v1/messages?beta=true"},
		"no kind, a model in the path": {models.Backend{}, gemini, "gemini-3-pro", true, "alt=sse", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"},
		"a model is one segment":       {models.Backend{}, gemini, "../../x:y?z", true, "", "/v1beta/models/..%2F..%2Fx%3Ay%3Fz:streamGenerateContent"},
		"anthropic":                    {models.Backend{Kind: "anthropic"}, anthropic, "large", true, "beta=true", "/v1/messages?beta=true"},
		"openai":                       {models.Backend{Kind: "openai"}, responses, "gpt", false, "", "/v1/responses"},
		"azure, v1":                    {models.Backend{Kind: "azure-openai"}, responses, "gpt", false, "", "/openai/v1/responses"},
		"azure, a preview of v1":       {models.Backend{Kind: "azure-openai", Query: map[string]string{"api-version": "preview"}}, chat, "gpt", false, "", "/openai/v1/chat/completions?api-version=preview"},
		"azure, a deployment":          {models.Backend{Kind: "azure-openai", Query: dated}, chat, "my gpt/4", false, "", "/openai/deployments/my%20gpt%2F4/chat/completions?api-version=2024-10-21"},
		"azure, dated responses":       {models.Backend{Kind: "azure-openai", Query: dated}, responses, "gpt", false, "", "/openai/responses?api-version=2024-10-21"},
		"vertex, streamed":             {models.Backend{Kind: "vertex"}, anthropic, "claude-sonnet-4@20250514", true, "beta=true", "/publishers/anthropic/models/claude-sonnet-4@20250514:streamRawPredict"},
		"vertex, whole":                {models.Backend{Kind: "vertex"}, anthropic, "claude", false, "", "/publishers/anthropic/models/claude:rawPredict"},
		"vertex, Gemini":               {models.Backend{Kind: "vertex"}, gemini, "gemini-3-pro", true, "alt=sse", "/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse"},
		"bedrock, streamed":            {models.Backend{Kind: "bedrock"}, anthropic, "anthropic.claude-v2:0", true, "beta=true", "/model/anthropic.claude-v2%3A0/invoke-with-response-stream"},
		"bedrock, an ARN":              {models.Backend{Kind: "bedrock"}, anthropic, "arn:aws:bedrock:us-east-1::inference-profile/x", false, "", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A%3Ainference-profile%2Fx/invoke"},
		"bedrock, no chat":             {models.Backend{Name: "aws", Kind: "bedrock"}, chat, "x", false, "", `/v1/chat/completions is not served by the backend "aws", which is of the kind bedrock`},
		"generic, its own path":        {models.Backend{Kind: "generic", Paths: map[string]string{chat: "/{model}/chat"}, Query: map[string]string{"a": "b c"}}, chat, "x", false, "q=1", "/x/chat?a=b+c&q=1"},
		"generic, the dialect's path":  {models.Backend{Kind: "generic"}, chat, "x", false, "", chat},
		"what the backend has wins":    {models.Backend{Query: map[string]string{"beta": "no"}}, anthropic, "x", false, "beta=true", "/v1/messages?beta=no"},
	} {
		query, err := url.ParseQuery(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		target, err := tc.backend.Target(endpointOf(tc.endpoint), tc.model, tc.streamed, query)
		got := target.Path
		if q := target.Query.Encode(); q != "" {
			got += "?" + q
		}
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestTargetOfAnyModel: whatever a model is called, the path has the same segments and the same method at its end.
func TestTargetOfAnyModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := rapid.String().Draw(t, "model")
		target, err := models.Backend{Kind: "vertex"}.Target(endpointOf("/v1/messages"), model, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse("https://example.com/v1" + target.Path)
		if err != nil || u.RawQuery != "" || u.Fragment != "" || strings.Count(u.EscapedPath(), "/") != 5 || u.Path != "/v1/publishers/anthropic/models/"+model+":rawPredict" {
			t.Errorf("%q: %s, %v", model, target.Path, err)
		}
	})
}

// TestKinds: what every kind must have, and what a backend may say about it.
func TestKinds(t *testing.T) {
	for _, k := range models.Kinds() {
		found, ok := models.FindKind(k.Name)
		if diff := cmp.Diff(k, found); diff != "" || !ok || k.Name == "" {
			t.Errorf("%s is listed twice, or not found:\n%s", k.Name, diff)
		}
		for endpoint, place := range k.Serves {
			for _, path := range []string{place.Path, place.Streamed, place.Dated} {
				if place.Path == "" || path != "" && !strings.HasPrefix(path, "/") {
					t.Errorf("%s, %s: %q is no path", k.Name, endpoint, path)
				}
			}
		}
	}
	kind := func(name string, change func(*models.Backend)) models.Backend {
		return backend(func(b *models.Backend) {
			b.Kind = name
			if change != nil {
				change(b)
			}
		})
	}
	for want, b := range map[string]models.Backend{
		"": kind("generic", func(b *models.Backend) {
			b.Paths, b.KeyHeader, b.KeyPrefix = map[string]string{"/v1/messages": "/api/{model}/ask"}, "X-Key", "Token "
		}),
		`kind: "azure" is not one of anthropic, openai, azure-openai`:              kind("azure", nil),
		"dialects: a backend of the kind azure-openai does not speak anthropic":    kind("azure-openai", nil),
		"paths, keyHeader and keyPrefix belong to the kind generic":                kind("anthropic", func(b *models.Backend) { b.KeyHeader = "X-Key" }),
		`paths, keyHeader and keyPrefix belong to the kind generic; the kind ""`:   kind("", func(b *models.Backend) { b.Paths = map[string]string{"/v1/messages": "/x"} }),
		`paths[/v1/chat/completions]: none of the backend's dialects has the path`: kind("generic", func(b *models.Backend) { b.Paths = map[string]string{"/v1/chat/completions": "/x"} }),
		`paths[/v1/messages]: "x" is not a path`:                                   kind("generic", func(b *models.Backend) { b.Paths = map[string]string{"/v1/messages": "x"} }),
		`paths[/v1/messages]: "/a?b=c" is not a path`:                              kind("generic", func(b *models.Backend) { b.Paths = map[string]string{"/v1/messages": "/a?b=c"} }),
		`paths[/v1/messages]: "/a/../b" is not a path`:                             kind("generic", func(b *models.Backend) { b.Paths = map[string]string{"/v1/messages": "/a/../b"} }),
		`paths[/v1/messages]: "//evil.example.com/b" is not a path`:                kind("generic", func(b *models.Backend) { b.Paths = map[string]string{"/v1/messages": "//evil.example.com/b"} }),
		`keyHeader: "X Key" is not the name of a header`:                           kind("generic", func(b *models.Backend) { b.KeyHeader = "X Key" }),
		"keyPrefix: it has no keyHeader":                                           kind("generic", func(b *models.Backend) { b.KeyPrefix = "Token " }),
		"keyPrefix: \"a\\nb\" has a character":                                     kind("generic", func(b *models.Backend) { b.KeyHeader, b.KeyPrefix = "X-Key", "a\nb" }),
		"baseURL: a backend of the kind vertex needs https":                        kind("vertex", func(b *models.Backend) { b.BaseURL, b.Key = "http://a", "" }),
		"region: a backend of the kind bedrock needs one":                          kind("bedrock", nil),
		"region: a backend of the kind bedrock needs one such":                     kind("vertex", func(b *models.Backend) { b.Region = "us-east-1" }),
	} {
		err := models.Config{Backends: []models.Backend{b}}.Validate()
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) || len(strings.Split(err.Error(), "\n")) != 1 {
			t.Errorf("%v, want %q alone", err, want)
		}
	}
}

// TestSendKey: which header carries a key.
func TestSendKey(t *testing.T) {
	anthropic, _ := dialect.Find("anthropic")
	chat, _ := dialect.Find("openai-chat")
	for want, tc := range map[string]struct {
		backend models.Backend
		dialect dialect.Dialect
	}{
		"X-Api-Key: k":                     {models.Backend{}, anthropic},
		"Authorization: Bearer k":          {models.Backend{Kind: "openai"}, chat},
		"Api-Key: k":                       {models.Backend{Kind: "azure-openai"}, chat},
		"Authorization: Bearer k ":         {models.Backend{Kind: "openrouter"}, anthropic},
		"X-Key: Token k":                   {models.Backend{Kind: "generic", KeyHeader: "X-Key", KeyPrefix: "Token "}, chat},
		"Authorization: Bearer k (vllm)":   {models.Backend{Kind: "vllm"}, anthropic},
		"X-Api-Key: k (generic, as it is)": {models.Backend{Kind: "generic"}, anthropic},
	} {
		name, value := tc.backend.SendKey(tc.dialect, "k")
		if got := name + ": " + value; !strings.HasPrefix(want, got) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	github := models.Backend{Kind: "github-models", Headers: map[string]string{"X-Team": "shop"}}
	if diff := cmp.Diff(map[string]string{"X-Github-Api-Version": "2022-11-28", "X-Team": "shop"}, github.Sent()); diff != "" || len(github.Headers) != 1 {
		t.Errorf("headers of GitHub Models (-want +got):\n%s", diff)
	}
}

// TestCountsStreams: a kind whose vendor documents stream_options is asked for a count, unless the backend says otherwise.
func TestCountsStreams(t *testing.T) {
	for name, tc := range map[string]struct {
		backend models.Backend
		want    bool
	}{
		"no kind":                {models.Backend{}, false},
		"no kind, said":          {models.Backend{StreamUsage: new(true)}, true},
		"openai":                 {models.Backend{Kind: "openai"}, true},
		"openai, denied":         {models.Backend{Kind: "openai", StreamUsage: new(false)}, false},
		"generic":                {models.Backend{Kind: "generic"}, false},
		"openrouter":             {models.Backend{Kind: "openrouter"}, false},
		"azure, v1":              {models.Backend{Kind: "azure-openai"}, true},
		"azure, v1 by name":      {models.Backend{Kind: "azure-openai", Query: map[string]string{"api-version": "preview"}}, true},
		"azure, the last before": {models.Backend{Kind: "azure-openai", Query: map[string]string{"api-version": "2024-08-01-preview"}}, false},
		"azure, the first":       {models.Backend{Kind: "azure-openai", Query: map[string]string{"api-version": "2024-09-01-preview"}}, true},
		"azure, dated":           {models.Backend{Kind: "azure-openai", Query: map[string]string{"api-version": "2024-10-21"}}, true},
	} {
		if got := tc.backend.CountsStreams(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUnreadLimits: what a server may not read bounds no reservation.
func TestUnreadLimits(t *testing.T) {
	for _, d := range dialect.All() {
		for _, kind := range models.Kinds() {
			unread := (models.Backend{Kind: kind.Name}).Unread(d)
			reads := slices.Contains([]string{"openai", "azure-openai", "vllm", "openrouter"}, kind.Name) || d.Name != "openai-chat"
			if (len(unread) == 0) != reads {
				t.Errorf("%s, %s: %q", kind.Name, d.Name, unread)
			}
		}
	}
}
