// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
)

// TestEveryReasonHasSomebodyToBlame: a reason that the gateway gives and that is not in the table of failures would be the agent's fault.
func TestEveryReasonHasSomebodyToBlame(t *testing.T) {
	known := map[string]bool{reasonAnswered: true} // no failure
	for _, r := range failures.Rows() {
		known[r.Reason] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "reason") {
				return true
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				reason, err := strconv.Unquote(text.Value)
				if found++; err != nil || !known[reason] {
					t.Errorf("%s: %s is in no row of internal/core/failures: add one with who is to blame, and run `make reference`", f.Name(), spec.Names[0].Name)
				}
			}
			return true
		})
	}
	if found < 10 {
		t.Errorf("%d reasons were found in the source", found)
	}
}
