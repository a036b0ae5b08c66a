// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// inGeneratedFiles are the only declarations of names of conditions and reasons outside of api/v1alpha1: hack/gen/reasons
// makes them from api/v1alpha1/conditions.go, and its tests hold that each name is in one of them.
var inGeneratedFiles = []string{
	"internal/core/protocol/zz_generated.reasons.go",
	"internal/core/lifecycle/zz_generated.reasons.go",
}

// notInConditions are files with constants that are named like reasons and are none of a condition, and what they are.
var notInConditions = map[string]string{
	"internal/core/egress/decide.go":   "why the gateway refuses a connection",
	"internal/core/protocol/reason.go": "the HTTP header that carries it",
}

// TestCoreSpeaksTheAPIsNames: the core repeats the API's names because it may not import them. Whatever file of whatever
// package declares such a name, it must be one that is generated.
func TestCoreSpeaksTheAPIsNames(t *testing.T) {
	const root = "../../.."
	declared := map[string]int{}
	for _, dir := range []string{"cmd", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, name := range namesIn(t, path) {
				declared[file]++
				if !slices.Contains(inGeneratedFiles, file) && notInConditions[file] == "" {
					t.Errorf("%s declares %s: add it to api/v1alpha1/conditions.go and run `make reasons`", file, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range slices.Concat(inGeneratedFiles, slices.Collect(maps.Keys(notInConditions))) {
		if declared[file] == 0 {
			t.Errorf("no constants were found in %s: correct the lists of this test", file)
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

// namesIn are the package-level constants and variables of a file that are named like a condition type or a reason.
func namesIn(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, decl := range file.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST && block.Tok != token.VAR {
			continue
		}
		for _, spec := range block.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if named.MatchString(name.Name) {
					found = append(found, name.Name)
				}
			}
		}
	}
	return found
}

// named is how constants of conditions and reasons are named.
var named = regexp.MustCompile(`^(Condition|Reason)[A-Z]`)
