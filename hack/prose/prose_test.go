// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// allowed is how many places of a source still break a rule. It only gets smaller: correct a place, then its number here. A source that is not named has none.
var allowed = map[string]int{}

// TestSources: the texts keep the rules, except for the sources that are only reported. `go run ./hack/prose -list` says where a rule is broken, and what to write instead.
func TestSources(t *testing.T) {
	rules, err := readRules("rules.tsv")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := readSources("../..")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range sources {
		known[s.name] = true
		if s.reported {
			continue
		}
		found := s.broken(rules)
		switch n := allowed[s.name]; {
		case len(found) > n:
			t.Errorf("%s has %d places that break a rule, and %d are allowed; see go run ./hack/prose -list: %q", s.name, len(found), n, found[:min(len(found), 8)])
		case len(found) < n:
			t.Errorf("%s has only %d places left that break a rule: make the number here smaller", s.name, len(found))
		}
	}
	for name := range allowed {
		if !known[name] {
			t.Errorf("%s is not there any more", name)
		}
	}
}

func TestRules(t *testing.T) {
	rules, err := readRules("rules.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"The step goes on in the place of the last one.":                               {"goes-on", "place-of"},
		"Leave it alone. The gateway alone has it.":                                    {"alone"},
		"It is no longer there, and it is no directory.":                               {"is-no"},
		"If a user asks, the watchdog waits. Where it is so, it ends. Where to begin.": {"where-if"},
		"The watchdog checks it in order to report it.":                                nil,
		"It ends in order.": {"out-of-order"},
	} {
		var got []string
		for _, r := range rules {
			if len(r.find(text)) > 0 {
				got = append(got, r.name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestMeasure(t *testing.T) {
	page := "# A title\n\nYou apply it. The pod is made by the manager, which\nreads `a.b` first.\n\n| it is blue | x |\n```yaml\nyou: are\n```\n* Another item of three words.\n"
	texts := paragraphs(page)
	want := []string{"A title", "You apply it. The pod is made by the manager, which reads CODE first.", "it is blue", "x", "Another item of three words."}
	if !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
	if got, want := measure(passages("", texts)), (figures{sentences: 4, you: 1, passive: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// commented is a file with a comment at each place where one can be.
const commented = `// Copyright of somebody.

// Package p is shown.
package p

// A is shown.
//
//	code is not
type A struct {
	B, c int // B is shown
	c    int // c is not
	// D is shown.
	D struct {
		E int // E is shown
		f int // f is not
	}
}

// a is not shown.
type a struct {
	B int // B of a is not shown
}

// I is shown.
type I interface {
	M() // M is shown
}

// M of A is shown.
// +marker is not
func (*A) M() {
	// in M
}

// M of a is not shown.
func (a) M() {}

// Names are shown.
const (
	one = 1 // one is not
	Two = 2 // Two is shown
)
`

func TestComments(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "p.go", commented, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got goSources
	got.add(parsed, func(*ast.CommentGroup) string { return "" })
	texts := func(all []passage) (texts []string) {
		for _, p := range all {
			texts = append(texts, p.text)
		}
		return texts
	}
	want := []string{
		"Package p is shown.", "A is shown.", "B is shown", "D is shown.", "E is shown", "I is shown.", "M is shown", "M of A is shown.", "Names are shown.", "Two is shown",
	}
	if got := texts(got.exported); !slices.Equal(got, want) {
		t.Errorf("exported: %q, want %q", got, want)
	}
	want = []string{"c is not", "f is not", "a is not shown.", "B of a is not shown", "M of a is not shown.", "one is not"}
	if got := texts(got.unexported); !slices.Equal(got, want) {
		t.Errorf("unexported: %q, want %q", got, want)
	}
	if got := texts(got.inline); !slices.Equal(got, []string{"in M"}) {
		t.Errorf("in functions: %q", got)
	}
}
