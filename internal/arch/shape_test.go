// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// maxMethods of a type: with more it has more than one concern, and what depends on it depends on all of them.
const maxMethods = 30

// TestShape holds the shape of types: how many methods one has, and that services of the watchdog are not stacked into one
// value by embedding.
func TestShape(t *testing.T) {
	for _, problem := range shape(readModule(t, "../..")) {
		t.Error(problem)
	}
}

func TestShapeBites(t *testing.T) {
	many := slices.Repeat([]string{"Server"}, maxMethods+1)
	for name, tc := range map[string]struct {
		file source
		want string // part of the one problem; "" for none
	}{
		"too many methods":    {source{pkg: "internal/x", methods: many}, "internal/x.Server has 31 methods"},
		"of a test":           {source{pkg: "internal/x", name: "x_test.go", methods: many}, ""},
		"a stacked service":   {source{pkg: "internal/app/watchdog/x", embeds: []string{"run embeds *attempt"}}, "run embeds *attempt"},
		"embedding elsewhere": {source{pkg: "internal/kube/x", embeds: []string{"run embeds *attempt"}}, ""},
	} {
		got := strings.Join(shape([]source{tc.file}), "\n")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// shape returns what is wrong with the types of the sources, sorted.
func shape(sources []source) []string {
	var problems []string
	count := map[string]int{}
	for _, s := range sources {
		if s.test() || s.name == "zz_generated.deepcopy.go" || strings.Contains(s.pkg, "/applyconfiguration") {
			continue
		}
		for _, receiver := range s.methods {
			count[s.pkg+"."+receiver]++
		}
		if !strings.HasPrefix(s.pkg, "internal/app/watchdog") {
			continue
		}
		for _, e := range s.embeds {
			problems = append(problems, fmt.Sprintf("%s: %s, which makes one value of two: use a field with a name", s.pkg, e))
		}
	}
	for name, n := range count {
		if n > maxMethods {
			problems = append(problems, fmt.Sprintf("%s has %d methods, and %d is the most: split it by concern", name, n, maxMethods))
		}
	}
	slices.Sort(problems)
	return problems
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return ""
}

// embedded are the pointers to types of its own package that a struct embeds.
func embedded(spec *ast.TypeSpec) (list []string) {
	structure, is := spec.Type.(*ast.StructType)
	if !is {
		return nil
	}
	for _, f := range structure.Fields.List {
		pointer, is := f.Type.(*ast.StarExpr)
		if !is || len(f.Names) > 0 {
			continue
		}
		if inner, is := pointer.X.(*ast.Ident); is {
			list = append(list, spec.Name.Name+" embeds *"+inner.Name)
		}
	}
	return list
}
