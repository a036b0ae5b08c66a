// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
)

// TestReadsWhatWasChecked: encoding/json reads a member into what an earlier one of the same name has left, which no schema has seen.
func TestReadsWhatWasChecked(t *testing.T) {
	type item struct {
		Line  int    `json:"line"`
		Cause string `json:"cause"`
	}
	type value struct {
		Items []item `json:"items"`
		One   *item  `json:"one"`
	}
	const one = `{"type":"object","additionalProperties":false,"required":["line"],"properties":{"line":{"type":"integer","minimum":1},"cause":{"enum":["A"]}}}`
	const schema = `{"type":"object","additionalProperties":false,"properties":{"items":{"type":"array","items":` + one + `},"one":` + one + `}}`
	for text, want := range map[string]value{
		`{"items":[{"line":-1,"cause":"B"},{"line":2}],"items":[{"line":3}]}`: {Items: []item{{Line: 3}}},
		`{"one":{"line":1,"cause":"B"},"one":{"line":2}}`:                     {One: &item{Line: 2}},
		`{"one":{"line":1,"line":2.0,"cause":"A"}}`:                           {One: &item{Line: 2, Cause: "A"}},
		`{"items":[{"line":1e2}]}`:                                            {Items: []item{{Line: 100}}},
		`{"items":null,"one":{"line":2,"cause":null}}`:                        {One: &item{Line: 2}}, // as models write what they leave out
	} {
		var got value
		if objection := answers.Read(schema, json.RawMessage(text), &got); objection != "" {
			t.Errorf("%s: %s", text, objection)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{
		`{"items":[{"line":0}]}`: "minimum", `{"items":[{"line":1e30}]}`: "large", `{"items":[{"line":1e400}]}`: "not JSON", `{"Items":[]}`: "additional", `{"one":{"line":null}}`: "required", `{"items":[null]}`: "type", `{"items":`: "not JSON", `null`: "type",
	} {
		if objection := answers.Read(schema, json.RawMessage(text), new(value)); !strings.Contains(objection, want) {
			t.Errorf("%s: %q, want %q", text, objection, want)
		}
	}
}
