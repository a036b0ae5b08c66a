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
const maxMethods = 25

// large are the types that have more, each with as many as it may keep. They may shrink, and nothing may be added.
var large = map[string]int{
	"internal/app/runner.runner":      26,
	"internal/core/judge.view":        26,
	"internal/core/supervise.State":   28,
	"internal/host/git.Repository":    45,
	"internal/host/workspace.Engine":  33,
	"internal/host/workspace.capture": 35,
	"internal/kube/intake.Server":     37,
}

// TestShape holds the shape of types: how many methods one has, and that services of the watchdog are not stacked into one
// value by embedding.
func TestShape(t *testing.T) {
	for _, problem := range shape(large, readModule(t, "../..")) {
		t.Error(problem)
	}
}

func TestShapeBites(t *testing.T) {
	many := slices.Repeat([]string{"Server"}, maxMethods+1)
	for name, tc := range map[string]struct {
		large map[string]int
		file  source
		want  string // part of the one problem; "" for none
	}{
		"too many methods":       {nil, source{pkg: "internal/x", methods: many}, "internal/x.Server has 26 methods"},
		"of a test":              {nil, source{pkg: "internal/x", name: "x_test.go", methods: many}, ""},
		"one that was large":     {map[string]int{"internal/x.Server": 26}, source{pkg: "internal/x", methods: many}, ""},
		"a large one that grows": {map[string]int{"internal/x.Server": 26}, source{pkg: "internal/x", methods: append(many, "Server")}, "has 27 methods"},
		"one that has shrunk":    {map[string]int{"internal/x.Server": 27}, source{pkg: "internal/x", methods: many}, "has 26 methods now: write that"},
		"a stacked service":      {nil, source{pkg: "internal/app/watchdog/x", embeds: []string{"run embeds *attempt"}}, "run embeds *attempt"},
		"embedding elsewhere":    {nil, source{pkg: "internal/kube/x", embeds: []string{"run embeds *attempt"}}, ""},
	} {
		got := strings.Join(shape(tc.large, []source{tc.file}), "\n")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// shape returns what is wrong with the types of the sources, sorted.
func shape(large map[string]int, sources []source) []string {
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
	for name, allowed := range large {
		if count[name] < allowed {
			problems = append(problems, fmt.Sprintf("%s has %d methods now: write that into internal/arch/shape_test.go", name, count[name]))
		}
	}
	for name, n := range count {
		if n > max(maxMethods, large[name]) {
			problems = append(problems, fmt.Sprintf("%s has %d methods, and %d is the most: split it by concern", name, n, max(maxMethods, large[name])))
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
