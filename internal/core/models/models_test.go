// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

func backend(change func(*models.Backend)) models.Backend {
	b := models.Backend{
		Name: "main", Dialects: []string{"anthropic"}, BaseURL: "https://api.example.com", Key: "main",
		Models: []models.Model{{Name: "large", ContextWindow: 200_000}, {Name: "small"}},
	}
	if change != nil {
		change(&b)
	}
	return b
}

func TestValidate(t *testing.T) {
	if err := (models.Config{Backends: []models.Backend{backend(nil)}}).Validate(); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if err := (models.Config{}).Validate(); err != nil {
		t.Errorf("an empty one: %v", err)
	}
	for want, change := range map[string]func(*models.Backend){
		"backends[1].name":                        func(*models.Backend) {},
		"backends[1].dialects: list at least one": func(b *models.Backend) { b.Dialects = nil },
		`backends[1].dialects: "greek"`:           func(b *models.Backend) { b.Dialects = []string{"greek"} },
		"backends[1].baseURL: \"ftp://a\"":        func(b *models.Backend) { b.BaseURL = "ftp://a" },
		"backends[1].baseURL: \"\"":               func(b *models.Backend) { b.BaseURL = "" },
		"backends[1].baseURL: a user":             func(b *models.Backend) { b.BaseURL = "https://u:p@a" },
		"plain http":                              func(b *models.Backend) { b.BaseURL = "http://a" },
		"backends[1].key":                         func(b *models.Backend) { b.Key = "../token" },
		"backends[1].concurrency":                 func(b *models.Backend) { b.Concurrency = -1 },
		`backends[1].fallbacks[1]: "gone"`:        func(b *models.Backend) { b.Fallbacks = []string{"main", "gone"} },
		"backends[1].fallbacks[0]: \"other\"":     func(b *models.Backend) { b.Fallbacks = []string{"other"} },
		"backends[1].fallbacks[1]: \"main\"":      func(b *models.Backend) { b.Fallbacks = []string{"main", "main"} },
		"backends[1].models":                      func(b *models.Backend) { b.Models = nil },
		"backends[1].models[1].name":              func(b *models.Backend) { b.Models = []models.Model{{Name: "a"}, {Name: "a"}} },
		"backends[1].models[0].prices.output": func(b *models.Backend) {
			b.Models = []models.Model{{Name: "a", Prices: models.Prices{Rates: models.Rates{Output: "3 EUR"}}}}
		},
		"backends[1].models[0].maxOutput":     func(b *models.Backend) { b.Models = []models.Model{{Name: "a", MaxOutput: -1}} },
		"backends[1].models[0].contextWindow": func(b *models.Backend) { b.Models = []models.Model{{Name: "a", ContextWindow: -1}} },
	} {
		other := backend(func(b *models.Backend) {
			if b.Name = "other"; want == "backends[1].name" {
				b.Name = "main"
			}
			change(b)
		})
		err := models.Config{Backends: []models.Backend{backend(nil), other}}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || len(strings.Split(err.Error(), "\n")) != 1 {
			t.Errorf("%v, want %s alone", err, want)
		}
	}
	many := models.Config{Backends: make([]models.Backend, 65)}
	if err := many.Validate(); err == nil || !strings.Contains(err.Error(), "the limit is 64") {
		t.Errorf("too many: %v", err)
	}
}

func TestRRouteModelsAnswerRoles(t *testing.T) {
	config := models.Config{Backends: []models.Backend{
		backend(func(b *models.Backend) { b.Name, b.Dialects = "other", []string{"other"} }),
		backend(nil),
		backend(func(b *models.Backend) { b.Name = "second" }),
	}}
	ref := func(role, backend, model string) policy.ModelRef {
		return policy.ModelRef{Role: role, Backend: backend, Model: model}
	}
	for name, tc := range map[string]struct {
		refs []policy.ModelRef
		role string
		want string
	}{
		"no policy":                   {nil, policy.RolePrimary, "main/large"},
		"no policy, a side call":      {nil, policy.RoleSummarizer, "main/large"},
		"by policy":                   {[]policy.ModelRef{ref("primary", "second", "small")}, policy.RolePrimary, "second/small"},
		"a side call without its own": {[]policy.ModelRef{ref("primary", "second", "small")}, policy.RoleSummarizer, "second/small"},
		"a side call":                 {[]policy.ModelRef{ref("primary", "second", "large"), ref("summarizer", "main", "small")}, policy.RoleSummarizer, "main/small"},
		"the watchdog":                {[]policy.ModelRef{ref("primary", "second", "large"), ref("supervisor", "main", "small")}, policy.RoleSupervisor, "main/small"},
		"the watchdog, by none":       {[]policy.ModelRef{ref("primary", "second", "small")}, policy.RoleSupervisor, "second/small"},
		"another role":                {[]policy.ModelRef{ref("supervisor", "second", "large")}, policy.RolePrimary, "main/large"},
		"an unknown backend":          {[]policy.ModelRef{ref("primary", "third", "large")}, policy.RolePrimary, `the policy's models[primary] names the backend "third", which the gateway does not have`},
		"an unknown model":            {[]policy.ModelRef{ref("primary", "main", "huge")}, policy.RolePrimary, `names the model "huge", which the backend "main" does not list`},
		"another dialect":             {[]policy.ModelRef{ref("primary", "other", "large")}, policy.RolePrimary, "does not speak the dialect anthropic but other"},
	} {
		r, err := config.Route("anthropic", tc.refs, tc.role)
		got := r.Backend.Name + "/" + r.Model.Name
		if err != nil {
			if _, is := errors.AsType[*models.Refusal](err); !is {
				t.Errorf("%s: %v is no refusal", name, err)
			}
			got = err.Error()
		}
		if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if _, err := (models.Config{}).Route("anthropic", nil, policy.RolePrimary); err == nil || !strings.Contains(err.Error(), "no backend") {
		t.Errorf("without backends: %v", err)
	}
}

// TestSpeaking: a client that speaks every dialect asks in the first that its backend lists.
func TestSpeaking(t *testing.T) {
	config := models.Config{Backends: []models.Backend{
		backend(func(b *models.Backend) { b.Name, b.Dialects = "chats", []string{"openai-chat", "anthropic"} }),
		backend(nil),
		backend(func(b *models.Backend) { b.Name, b.Dialects = "both", []string{"openai-responses", "openai-chat"} }),
	}}
	ref := func(role, backend, model string) []policy.ModelRef {
		return []policy.ModelRef{{Role: "supervisor", Backend: "main", Model: "large"}, {Role: role, Backend: backend, Model: model}}
	}
	for name, tc := range map[string]struct {
		config models.Config
		refs   []policy.ModelRef
		want   string
	}{
		"no policy":          {config, nil, "openai-chat chats/large 200000"},
		"another role":       {config, ref("summarizer", "main", "small"), "openai-chat chats/large 200000"},
		"by policy":          {config, ref("primary", "main", "small"), "anthropic main/small 0"},
		"one of several":     {config, ref("primary", "both", "large"), "openai-responses both/large 200000"},
		"an unknown backend": {config, ref("primary", "third", "large"), `the policy's models[primary] names the backend "third", which the gateway does not have`},
		"an unknown model":   {config, ref("primary", "both", "huge"), `the policy's models[primary] names the model "huge", which the backend "both" does not list`},
		"no backends":        {models.Config{}, nil, "the gateway has no backend: an administrator adds one to its configuration"},
		"none for a policy":  {models.Config{}, ref("primary", "main", "large"), `the policy's models[primary] names the backend "main", which the gateway does not have`},
	} {
		d, r, err := tc.config.Speaking(tc.refs)
		got := fmt.Sprintf("%s %s/%s %d", d, r.Backend.Name, r.Model.Name, r.Model.ContextWindow)
		if err != nil {
			if _, is := errors.AsType[*models.Refusal](err); !is {
				t.Errorf("%s: %v is no refusal", name, err)
			}
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestRoutes: fallbacks that speak the dialect follow, with the model of the same name or their first.
func TestRoutes(t *testing.T) {
	named := func(name string, list []models.Model, fallbacks ...string) models.Backend {
		return backend(func(b *models.Backend) { b.Name, b.Models, b.Fallbacks = name, list, fallbacks })
	}
	config := models.Config{Backends: []models.Backend{
		named("first", []models.Model{{Name: "large"}, {Name: "small"}}, "other", "third", "second"),
		named("second", []models.Model{{Name: "tiny"}, {Name: "small"}}, "first"),
		named("third", []models.Model{{Name: "huge"}}),
		backend(func(b *models.Backend) { b.Name, b.Dialects = "other", []string{"openai-chat"} }),
	}}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	routes, err := config.Routes("anthropic", []policy.ModelRef{{Role: "primary", Backend: "first", Model: "small"}}, policy.RolePrimary)
	var got []string
	for _, r := range routes {
		got = append(got, r.Backend.Name+"/"+r.Model.Name)
	}
	if want := "first/small third/huge second/small"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	if _, err := config.Routes("anthropic", []policy.ModelRef{{Role: "primary", Backend: "gone", Model: "small"}}, policy.RolePrimary); err == nil {
		t.Error("a backend that is not there has routes")
	}
}
