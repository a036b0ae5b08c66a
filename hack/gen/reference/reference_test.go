// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
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

// TestReasonsOfTheCoreAreDocumented: the core does not know the API, so it has constants of its own; what they say ends up
// in conditions and must be on the page.
func TestReasonsOfTheCoreAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	page, err := conditionsPage(root)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "`"); strings.HasPrefix(line, "| `") {
			documented[cells[1]] = true
		}
	}
	found := 0
	for _, dir := range []string{"internal/core/contract", "internal/core/lifecycle"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for name, value := range reasons(t, file) {
				found++
				if !documented[value] {
					t.Errorf("%s: %s = %q is not in %s", dir, name, value, conditionsFile)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no reasons found: look where they went")
	}
}

// reasons are the values of a file's constants that begin with Reason.
func reasons(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatalf("%s: %v", spec.Names[0].Name, err)
			}
			found[spec.Names[0].Name] = value
		}
		return true
	})
	return found
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
