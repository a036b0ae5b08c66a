// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apinames reads the one list of condition types and reasons from its source, with what each of them means.
package apinames

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// File declares every condition type and reason, and nothing else.
const File = "api/v1alpha1/conditions.go"

// Constant is a documented string constant.
type Constant struct {
	// Name without its prefix, value, and what it means.
	Name, Value, Meaning string
}

// Names are the lists of File, each in the order of the file.
type Names struct {
	// Types of conditions.
	Types []Constant
	// Own are the reasons that the controllers give, and Reported the reasons that come from a watchdog.
	Own, Reported []Constant
}

// Reasons are all reasons.
func (n Names) Reasons() []Constant { return append(slices.Clip(n.Own), n.Reported...) }

// Read reads File below the checkout's root.
func Read(root string) (Names, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, File), nil, parser.ParseComments)
	if err != nil {
		return Names{}, fmt.Errorf("read %s: %w", File, err)
	}
	return namesOf(file)
}

// group is a block of constants: how its comment begins, the prefix of its names, and the list that they belong to.
type group struct {
	heading, prefix string
	list            *[]Constant
}

// namesOf reads the blocks of a file. What is in none of the groups, and a group that is missing, is an error: a name must
// not get lost without a word.
func namesOf(file *ast.File) (Names, error) {
	var names Names
	groups := []group{
		{"Condition types.", "Condition", &names.Types},
		{"Reasons that the controllers give.", "Reason", &names.Own},
		{"Reasons that a watchdog reports", "Reason", &names.Reported},
	}
	for _, decl := range file.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			return Names{}, fmt.Errorf("%s: there is more than blocks of constants: move it to another file", File)
		}
		into := groupOf(groups, block.Doc.Text())
		if into == nil {
			return Names{}, fmt.Errorf("%s: the comment of a block begins with %q: want one of %q", File, firstLine(block.Doc.Text()), headings(groups))
		}
		for _, spec := range block.Specs {
			c, err := constantOf(spec.(*ast.ValueSpec), into.prefix)
			if err != nil {
				return Names{}, err
			}
			*into.list = append(*into.list, c)
		}
	}
	for _, g := range groups {
		if len(*g.list) == 0 {
			return Names{}, fmt.Errorf("%s has no block of constants whose comment begins with %q", File, g.heading)
		}
	}
	return names, nil
}

func groupOf(groups []group, comment string) *group {
	for i, g := range groups {
		if strings.HasPrefix(comment, g.heading) {
			return &groups[i]
		}
	}
	return nil
}

func headings(groups []group) []string {
	list := make([]string, len(groups))
	for i, g := range groups {
		list[i] = g.heading
	}
	return list
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// constantOf reads one constant. It must have the prefix, a value that is a literal, and a comment "Name: meaning.".
func constantOf(spec *ast.ValueSpec, prefix string) (Constant, error) {
	name := spec.Names[0].Name
	short, found := strings.CutPrefix(name, prefix)
	if !found {
		return Constant{}, fmt.Errorf("%s: %s must begin with %s", File, name, prefix)
	}
	comment := strings.Join(strings.Fields(spec.Doc.Text()), " ")
	meaning, found := strings.CutPrefix(comment, name+": ")
	if !found || !strings.HasSuffix(meaning, ".") {
		return Constant{}, fmt.Errorf("%s: %s needs a comment %q, has %q", File, name, name+": what it means.", comment)
	}
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return Constant{}, fmt.Errorf("%s: %s must be declared alone and with its value", File, name)
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return Constant{}, fmt.Errorf("%s: %s must be a string literal", File, name)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return Constant{}, fmt.Errorf("%s: value of %s: %w", File, name, err)
	}
	return Constant{Name: short, Value: value, Meaning: upper(meaning)}, nil
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
