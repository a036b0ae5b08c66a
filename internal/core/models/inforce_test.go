// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

func inForce(backends ...Backend) InForce {
	return InForce{Backends: Config{Backends: backends}.Outline().Backends}
}

func TestChoose(t *testing.T) {
	main := Backend{Name: "main", Dialects: []string{"openai-chat", "anthropic"}, BaseURL: "https://api.example.com", Key: "main", Models: []Model{{Name: "large", ContextWindow: 200}}}
	spare := Backend{Name: "spare", Dialects: []string{"anthropic"}, BaseURL: "http://spare", Models: []Model{{Name: "small", ContextWindow: 100}}}
	backed := main
	backed.Fallbacks = []string{"spare"}
	lacking := func(in InForce, entry string) InForce {
		in.Missing = map[string][]string{"main": {entry}}
		return in
	}
	refused := inForce(spare)
	refused.Problem = "backends[1].kind: unknown"
	mine := []policy.ModelRef{{Role: policy.RolePrimary, Backend: "main", Model: "large"}}
	own := []policy.ModelRef{{Role: policy.RolePrimary, Backend: "main", Model: "large", Key: policy.SecretKey{Secret: "s", Key: "k"}}}
	for name, tc := range map[string]struct {
		fleet   Fleet
		dialect string
		refs    []policy.ModelRef
		want    Choice
		refusal string
	}{
		"one":                       {Fleet{"a": inForce(main)}, "anthropic", nil, Choice{"anthropic", 200}, ""},
		"every dialect":             {Fleet{"a": inForce(main)}, "", nil, Choice{"openai-chat", 200}, ""},
		"two":                       {Fleet{"a": inForce(main), "b": inForce(main)}, "anthropic", mine, Choice{"anthropic", 200}, ""},
		"the smaller window":        {Fleet{"a": inForce(main), "b": inForce(spare)}, "anthropic", nil, Choice{"anthropic", 100}, ""},
		"one is stale":              {Fleet{"a": inForce(main), "b": inForce()}, "anthropic", mine, Choice{}, `at the gateway b, the policy's models[primary] names the backend "main"`},
		"other dialects":            {Fleet{"a": inForce(main), "b": inForce(spare)}, "", nil, Choice{}, "the gateways a and b have different configurations in force"},
		"refused, and not needed":   {Fleet{"a": refused}, "anthropic", nil, Choice{"anthropic", 100}, ""},
		"refused, and needed":       {Fleet{"a": refused}, "anthropic", mine, Choice{}, "the last good one stays in force: backends[1].kind: unknown"},
		"a key is missing":          {Fleet{"a": lacking(inForce(main), "main")}, "anthropic", nil, Choice{}, `adds the entry "main"`},
		"the project has one":       {Fleet{"a": lacking(inForce(main), "main")}, "anthropic", own, Choice{"anthropic", 200}, ""},
		"but no certificate":        {Fleet{"a": lacking(inForce(main), "client")}, "anthropic", own, Choice{}, `adds the entry "client"`},
		"a fallback needs no key":   {Fleet{"a": lacking(inForce(backed, spare), "main")}, "anthropic", nil, Choice{"anthropic", 200}, ""},
		"it speaks another dialect": {Fleet{"a": lacking(inForce(backed, spare), "main")}, "openai-chat", nil, Choice{}, `adds the entry "main"`},
		"a key over plain http":     {Fleet{"a": inForce(spare)}, "anthropic", []policy.ModelRef{{Role: policy.RolePrimary, Backend: "spare", Model: "small", Key: policy.SecretKey{Secret: "s", Key: "k"}}}, Choice{}, "plain http"},
	} {
		got, err := tc.fleet.Choose(tc.dialect, tc.refs)
		if got != tc.want || (err == nil) != (tc.refusal == "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestFleet: gateways that are gone do not count, and only what is in force changes the hash.
func TestFleet(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	a := inForce(Backend{Name: "main", BaseURL: "https://user.example.com/path", Headers: map[string]string{"X": "secret"}, CA: "pem", Models: []Model{{Name: "large"}}})
	if text, err := json.Marshal(a); err != nil || strings.Contains(string(text), "example.com") || strings.Contains(string(text), "secret") {
		t.Errorf("%s, %v", text, err)
	}
	a.Renewed = now.Add(-InForceFor)
	b := a
	b.Renewed = now.Add(-InForceFor - time.Millisecond)
	fleet := Fleet{"a": a, "b": b}
	if alive := fleet.Alive(now); len(alive) != 1 || len(fleet) != 2 || alive["a"].Renewed != a.Renewed {
		t.Errorf("alive: %+v of %d", alive, len(fleet))
	}
	if one, both := (Fleet{"a": a}).Hash(), fleet.Hash(); one == "" || one != both || (Fleet{}).Hash() != "" {
		t.Errorf("%q, %q", one, both)
	}
	b.Reached = []Reach{{Backend: "main", Avoided: now}}
	if (Fleet{"a": a}).Hash() != (Fleet{"a": a, "b": b}).Hash() {
		t.Error("how a gateway fares changes the hash, which wakes Features")
	}
	b.Missing = map[string][]string{"main": {"main"}}
	if (Fleet{"a": a}).Hash() == (Fleet{"a": a, "b": b}).Hash() {
		t.Error("a key that is missing does not change the hash")
	}
}
