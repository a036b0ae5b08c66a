// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// conditionsFile declares every condition type and reason.
const conditionsFile = "api/v1alpha1/conditions.go"

// constant is a documented string constant.
type constant struct {
	// name without its prefix, value, and what it means.
	name, value, meaning string
}

// conditionsPage lists condition types and reasons with the comments that stand beside their constants.
func conditionsPage(root string) ([]byte, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, conditionsFile), nil, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", conditionsFile, err)
	}
	types, err := constants(file, "Condition")
	if err != nil {
		return nil, err
	}
	reasons, err := constants(file, "Reason")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Made from %s by `make reference`. Do not edit. -->\n", conditionsFile)
	b.WriteString("# Conditions and reasons\n\n")
	b.WriteString("What `kubectl describe` shows of Features, SupervisorPolicies, Templates and Checkpoints. An Event that tells of a\n" +
		"change has the reason of the condition that changed.\n\n## Condition types\n\n")
	b.WriteString("`True` is well, except where the meaning begins with Abnormal: there `True` is trouble, or work that goes on.\n\n")
	table(&b, "Type", types)
	b.WriteString("\n## Reasons\n\n")
	table(&b, "Reason", reasons)
	return b.Bytes(), nil
}

func table(b *bytes.Buffer, heading string, list []constant) {
	fmt.Fprintf(b, "| %s | Meaning |\n|---|---|\n", heading)
	for _, c := range list {
		fmt.Fprintf(b, "| `%s` | %s |\n", c.value, strings.ReplaceAll(c.meaning, "|", `\|`))
	}
}

// constants finds the string constants whose names have a prefix, in the order of the file. A constant without a comment
// of the form "Name: meaning." is an error.
func constants(file *ast.File, prefix string) ([]constant, error) {
	var list []constant
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			if !strings.HasPrefix(value.Names[0].Name, prefix) {
				continue
			}
			c, err := constantOf(value, prefix)
			if err != nil {
				return nil, err
			}
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s declares no constant with the prefix %s", conditionsFile, prefix)
	}
	return list, nil
}

func constantOf(spec *ast.ValueSpec, prefix string) (constant, error) {
	name := spec.Names[0].Name
	comment := strings.Join(strings.Fields(spec.Doc.Text()), " ")
	meaning, found := strings.CutPrefix(comment, name+": ")
	if !found || !strings.HasSuffix(meaning, ".") {
		return constant{}, fmt.Errorf("%s: %s needs a comment %q, has %q", conditionsFile, name, name+": what it means.", comment)
	}
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return constant{}, fmt.Errorf("%s: %s must be declared alone and with its value", conditionsFile, name)
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return constant{}, fmt.Errorf("%s: %s must be a string literal", conditionsFile, name)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return constant{}, fmt.Errorf("%s: value of %s: %w", conditionsFile, name, err)
	}
	return constant{name: strings.TrimPrefix(name, prefix), value: value, meaning: upper(meaning)}, nil
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
