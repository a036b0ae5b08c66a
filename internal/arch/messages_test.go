// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

const messagesFile = "testdata/messages.txt"

// TestMessages holds every text of a program that a person may read: messages of conditions and Events, violations, errors,
// logs, help. A change of wording is a change of that file, and is seen in review. -update writes it.
func TestMessages(t *testing.T) {
	byPackage := map[string][]string{}
	for _, dir := range []string{"api", "cmd", "controllers", "internal"} {
		for _, file := range goFiles(t, filepath.Join("../..", dir)) {
			if texts := messages(t, file); len(texts) > 0 {
				pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../../")
				byPackage[pkg] = append(byPackage[pkg], texts...)
			}
		}
	}
	var got strings.Builder
	for _, pkg := range slices.Sorted(maps.Keys(byPackage)) {
		slices.Sort(byPackage[pkg])
		fmt.Fprintf(&got, "%s\n", pkg)
		for _, text := range slices.Compact(byPackage[pkg]) {
			fmt.Fprintf(&got, "\t%s\n", text)
		}
	}
	if *update {
		if err := os.WriteFile(messagesFile, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(messagesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("messages (-want +got); go test ./internal/arch -update accepts them:\n%s", diff)
	}
}

// goFiles are those of the programs below a directory, sorted.
func goFiles(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "testkit" || entry.Name() == "applyconfiguration"),
			entry.IsDir() && strings.HasSuffix(path, "internal/core/secrets"): // texts of gitleaks
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(entry.Name(), "zz_generated"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files below %s, %v", len(files), root, err)
	}
	slices.Sort(files)
	return files
}

// messages are the texts of a file, each on a line.
func messages(t *testing.T, path string) (texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field: // imports and tags of fields
			return false
		case *ast.BinaryExpr:
			if text, whole := joined(n); whole {
				if isMessage(text) {
					texts = append(texts, oneLine(text))
				}
				return false
			}
		case *ast.BasicLit:
			if text, is := literal(n); is && isMessage(text) {
				texts = append(texts, oneLine(text))
			}
		}
		return true
	})
	return texts
}

// joined is the text of literals that are added to one another.
func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return literal(e)
	case *ast.BinaryExpr:
		x, is := joined(e.X)
		y, too := joined(e.Y)
		return x + y, is && too && e.Op == token.ADD
	}
	return "", false
}

func literal(b *ast.BasicLit) (string, bool) {
	if b.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(b.Value)
	return text, err == nil
}

// isMessage: it has two words at least.
func isMessage(text string) bool {
	words := 0
	for word := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(word, unicode.IsLetter) {
			words++
		}
	}
	return words > 1
}

// oneLine shows every character, those that cannot be seen by their escapes.
func oneLine(text string) string {
	var line strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			line.WriteRune(r)
		} else {
			line.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return line.String()
}
