// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGlossary holds docs/reference/glossary.md to the code: each word has one line, in order, and the package, type or field that the
// line names is there and speaks of the word, in its name or in its comment.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| word ") {
			continue
		}
		found := entry.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil {
			t.Errorf("want '| word | meaning. | `package.Name` |', got %s", line)
			continue
		}
		word, place := found[1], found[3]
		words = append(words, strings.ToLower(word))
		said, err := docOf("../..", place)
		if err != nil {
			t.Errorf("%s: %v", word, err)
		} else if plain, _, _ := strings.Cut(word, " ("); !strings.Contains(letters(said), letters(plain)) {
			t.Errorf("%s: neither the name nor the comment of %s has the word", word, place)
		}
	}
	if len(words) == 0 || !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
		t.Errorf("each word must be there once, in alphabetical order: %q", words)
	}
}

// entry is a line of the glossary: word, meaning, place.
var entry = regexp.MustCompile("^\\| ([A-Za-z ()]+) \\| ([^|]+\\.) \\| `([^`|]+)` \\|$")

// TestGlossaryMarks: a word is marked as not acted on if its type is that of a field that the CRDs refuse, and only then.
func TestGlossaryMarks(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	refused, err := refusedTypes("../../api/v1alpha1")
	if err != nil || len(refused) == 0 {
		t.Fatalf("no field of the API is refused: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		found := entry.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil {
			continue
		}
		name, ofAPI := strings.CutPrefix(found[3], "api/v1alpha1.")
		if want := ofAPI && refused[name]; strings.Contains(found[2], "*(not acted on)*") != want {
			t.Errorf("%s: marked as *(not acted on)*: want %t", found[1], want)
		}
	}
}

// refusedTypes are the names of the types of fields that a rule refuses because this version does not act on them (see kube/inert).
func refusedTypes(dir string) (map[string]bool, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || !strings.Contains(field.Doc.Text(), `message="this version does not act on `) {
				return true
			}
			of := field.Type
			for {
				switch inner := of.(type) {
				case *ast.StarExpr:
					of = inner.X
					continue
				case *ast.ArrayType:
					of = inner.Elt
					continue
				case *ast.Ident:
					names[inner.Name] = true
				}
				return true
			}
		})
	}
	return names, nil
}

// letters are the letters of a text, in lower case: words are found in identifiers, too.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(text))
}

// docOf is the name and the comment of a package ("internal/core/judge"), of something that it declares
// ("internal/core/judge.Rule"), or of a field ("internal/core/judge.Rule.ID").
func docOf(root, place string) (string, error) {
	dir, name, isName := strings.Cut(place, ".")
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(paths) == 0 {
		return "", fmt.Errorf("there is no package %s", dir)
	}
	docs := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return "", err
		}
		docs[""] += file.Doc.Text()
		for _, decl := range file.Decls {
			declared(docs, decl)
		}
	}
	said, ok := docs[name]
	if !ok {
		return "", fmt.Errorf("%s does not declare %s", dir, name)
	}
	if strings.TrimSpace(said) == "" {
		return "", fmt.Errorf("%s has no comment", place)
	}
	if !isName {
		name = filepath.Base(dir)
	}
	return name + " " + said, nil
}

// declared adds the comments of what is declared, and of the fields of structs, by name. Something in a block has the
// block's comment, too.
func declared(docs map[string]string, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			docs[d.Name.Name] = d.Doc.Text()
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				docs[s.Name.Name] = d.Doc.Text() + s.Doc.Text()
				if fields, ok := s.Type.(*ast.StructType); ok {
					for _, f := range fields.Fields.List {
						for _, n := range f.Names {
							docs[s.Name.Name+"."+n.Name] = f.Doc.Text() + " " + f.Comment.Text()
						}
					}
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					docs[n.Name] = d.Doc.Text() + s.Doc.Text()
				}
			}
		}
	}
}

// TestGlossaryRefuses: the check above bites.
func TestGlossaryRefuses(t *testing.T) {
	for place, want := range map[string]string{
		"internal/core/nothing":           "there is no package internal/core/nothing",
		"internal/core/judge.Nothing":     "internal/core/judge does not declare Nothing",
		"internal/core/judge.Rule.Hidden": "internal/core/judge does not declare Rule.Hidden",
	} {
		if _, err := docOf("../..", place); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", place, err, want)
		}
	}
	if said, err := docOf("../..", "internal/core/judge.Rule.ID"); err != nil || !strings.Contains(said, "names the rule in violations") {
		t.Errorf("the comment of a field: got %q, %v", said, err)
	}
}
