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

// TestShape holds that services of the watchdog are not stacked into one value by embedding. Sizes are looked at, and hold nobody: hack/house prints them.
func TestShape(t *testing.T) {
	for _, problem := range shape(readModule(t, "../..")) {
		t.Error(problem)
	}
}

func TestShapeBites(t *testing.T) {
	for name, tc := range map[string]struct {
		file source
		want string // part of the one problem; "" for none
	}{
		"of a test":           {source{pkg: "internal/app/watchdog/x", name: "x_test.go", embeds: []string{"run embeds *attempt"}}, ""},
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
	for _, s := range sources {
		if s.test() || s.name == "zz_generated.deepcopy.go" || strings.Contains(s.pkg, "/applyconfiguration") {
			continue
		}
		if !strings.HasPrefix(s.pkg, "internal/app/watchdog") {
			continue
		}
		for _, e := range s.embeds {
			problems = append(problems, fmt.Sprintf("%s: %s, which makes one value of two: use a field with a name", s.pkg, e))
		}
	}
	slices.Sort(problems)
	return problems
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
