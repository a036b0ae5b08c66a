// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

// TestPagesAreFresh: what is committed is what the code says.
func TestPagesAreFresh(t *testing.T) {
	for _, p := range pages() {
		want, err := p.render(root)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		got, err := os.ReadFile(pagePath(root, p))
		if err != nil {
			t.Errorf("%v: run `make reference`", err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/reference/%s is stale, run `make reference` (-want +got):\n%s", p.name, diff)
		}
	}
}

// TestConditionsAreNamedAfterTheirValues: a reader of the page finds the constant, and no value is there twice.
func TestConditionsAreNamedAfterTheirValues(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, conditionsFile), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"Condition", "Reason"} {
		list, err := constants(file, prefix)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, c := range list {
			if c.name != c.value {
				t.Errorf("%s%s has the value %q", prefix, c.name, c.value)
			}
			if seen[c.value] {
				t.Errorf("%s %q is declared twice", prefix, c.value)
			}
			seen[c.value] = true
		}
	}
}

func TestConstants(t *testing.T) {
	const head = "package p\n\nconst (\n"
	cases := map[string]struct {
		source    string
		want      []constant
		wantError string
	}{
		"documented": {
			source: "\t// ReasonA: it is | so.\n\tReasonA = \"A\"\n\t// OtherB is not looked at.\n\tOtherB = \"B\"\n",
			want:   []constant{{name: "A", value: "A", meaning: "It is | so."}},
		},
		"two lines": {
			source: "\t// ReasonA: it is\n\t// so.\n\tReasonA = \"A\"\n",
			want:   []constant{{name: "A", value: "A", meaning: "It is so."}},
		},
		"undocumented":           {source: "\tReasonA = \"A\"\n", wantError: "ReasonA needs a comment"},
		"comment on another one": {source: "\t// ReasonB: so.\n\tReasonA = \"A\"\n", wantError: "ReasonA needs a comment"},
		"computed":               {source: "\t// ReasonA: so.\n\tReasonA = \"A\" + \"B\"\n", wantError: "must be a string literal"},
		"none":                   {source: "\tOtherB = \"B\"\n", wantError: "no constant with the prefix Reason"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "p.go", head+c.source+")\n", parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			got, err := constants(file, "Reason")
			if c.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantError) {
					t.Fatalf("want error %q, got %v", c.wantError, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(constant{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
