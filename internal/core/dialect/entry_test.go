// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"reflect"
	"slices"
	"testing"
)

// mayLack are the fields that an entry may leave out, each with what holds then.
var mayLack = map[string]string{
	"AnswerHeaders":   "the agent gets no header that is the dialect's own",
	"Query":           "the provider gets no parameter of the query",
	"betas":           "no header asks for features",
	"canonical":       "each member has one spelling",
	"inPath":          "the body names the model",
	"usageOnDemand":   "every stream counts its tokens",
	"limits.choices":  "an answer has one choice",
	"limits.thinking": "no member bounds what the model thinks",
	"behindText":      "the history is always a list",
}

// TestEntriesAreWhole: a function that an entry lacks would panic in the gateway, and an answer without limits would spend more than its budget.
func TestEntriesAreWhole(t *testing.T) {
	for _, d := range All() {
		for _, name := range lacking("", reflect.ValueOf(d)) {
			if mayLack[name] == "" {
				t.Errorf("the entry of %s lacks %s: add it, or say in this test what holds without it", d.Name, name)
			}
		}
	}
	limited := Dialect{limits: limits{most: [][]string{{"max_tokens"}}}}
	fields := lacking("", reflect.ValueOf(limited))
	for name := range mayLack {
		if !slices.Contains(fields, name) {
			t.Errorf("an entry has no field %s: correct this test", name)
		}
	}
}

// lacking are the fields of a struct, and of the structs in it, that are not set.
func lacking(in string, of reflect.Value) (names []string) {
	for i := range of.NumField() {
		name, value := in+of.Type().Field(i).Name, of.Field(i)
		switch {
		case value.IsZero():
			names = append(names, name)
		case value.Kind() == reflect.Struct:
			names = append(names, lacking(name+".", value)...)
		}
	}
	return names
}

// TestTheChoiceGoesWithTheTools: where all tools are taken out, the member that says which may be called goes too, whatever its dialect calls it.
func TestTheChoiceGoesWithTheTools(t *testing.T) {
	search := shape{tool: "vendor/search", out: true}
	wall := object(map[string]shape{"tools": {offers: true, kinds: &kinds{of: map[string]*shape{"search": &search}}}})
	r, err := Dialect{choice: "tool_mode", wall: &wall}.ReadRequest([]byte(`{"model":"m","tool_mode":"any","tools":[{"type":"search"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.Filter(Endpoint{}, Allowed{}); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Body(Edit{Model: "m"}); err != nil || string(got) != `{"model":"m"}` {
		t.Errorf("%s, %v", got, err)
	}
}
