// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// constants of a file whose names have a prefix, by name.
func constants(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				found[spec.Names[0].Name] = text
			}
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s has no constants %s*", file, prefix)
	}
	return found
}

// TestCoreSpeaksTheAPIsNames: the core repeats the API's names because it may not import them; here they meet.
func TestCoreSpeaksTheAPIsNames(t *testing.T) {
	const api = "../../../api/v1alpha1/conditions.go"
	for _, tc := range []struct{ core, prefix string }{
		{"../../core/lifecycle/reasons.go", "Condition"},
		{"../../core/lifecycle/reasons.go", "Reason"},
		{"../../core/contract/report.go", "Reason"},
	} {
		documented := slices.Collect(maps.Values(constants(t, api, tc.prefix)))
		for name, value := range constants(t, tc.core, tc.prefix) {
			// Deleted only ever tells a watchdog why it is to stop.
			if !slices.Contains(documented, value) && value != contract.ReasonDeleted {
				t.Errorf("%s of %s is %q, which api/v1alpha1/conditions.go does not document", name, tc.core, value)
			}
		}
	}
	for core, api := range map[string]string{
		string(lifecycle.RunAgent): v1alpha1.RunAgent, string(lifecycle.RunSeal): v1alpha1.RunSeal,
		string(lifecycle.Delivered): string(v1alpha1.PhaseDelivered), string(lifecycle.Pending): string(v1alpha1.PhasePending),
		policy.ModeDeterministic: string(v1alpha1.ModeDeterministic), policy.PromotionIncremental: string(v1alpha1.PromotionIncremental),
		policy.RevertNone: string(v1alpha1.RevertNone),
	} {
		if core != api {
			t.Errorf("the core says %q, the API %q", core, api)
		}
	}
}

// TestReasonsAreCamelCase: reasons are words of the API like any other.
func TestReasonsAreCamelCase(t *testing.T) {
	camelCase := regexp.MustCompile(`^([A-Z][a-z0-9]*)+$`)
	for _, prefix := range []string{"Reason", "Condition"} {
		for name, value := range constants(t, "../../../api/v1alpha1/conditions.go", prefix) {
			if !camelCase.MatchString(value) {
				t.Errorf("%s is %q, which is not in CamelCase", name, value)
			}
		}
	}
}
