// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// goSources are the comments of the checkout's Go files by what they describe. Tests and generated files do not count.
type goSources struct {
	exported   []passage // what `go doc` shows: packages, exported names, exported fields and methods of exported types
	unexported []passage // other declarations
	inline     []passage // inside functions, and between declarations
}

// readComments reads all Go files below root.
func readComments(root string) (goSources, error) {
	var all goSources
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all.add(file, func(group *ast.CommentGroup) string {
			return fmt.Sprintf("%s:%d", filepath.ToSlash(name), files.Position(group.Pos()).Line)
		})
		return nil
	})
	return all, err
}

// add the comments of a file. place says where a comment is.
func (all *goSources) add(file *ast.File, place func(*ast.CommentGroup) string) {
	describes := map[*ast.CommentGroup]bool{} // exported or not; what is absent describes no declaration
	doc := func(exported bool, groups ...*ast.CommentGroup) {
		for _, group := range groups {
			if group != nil {
				describes[group] = exported
			}
		}
	}
	doc(true, file.Doc)
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			doc(declaration.Name.IsExported() && (declaration.Recv == nil || ast.IsExported(receiver(declaration.Recv.List[0].Type))), declaration.Doc)
		case *ast.GenDecl:
			doc(slices.ContainsFunc(declaration.Specs, exports), declaration.Doc)
			for _, spec := range declaration.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					doc(exports(spec), spec.Doc, spec.Comment)
				case *ast.TypeSpec:
					doc(exports(spec), spec.Doc, spec.Comment)
					members(spec.Type, exports(spec), doc)
				}
			}
		}
	}
	for _, group := range file.Comments {
		exported, declares := describes[group]
		into := &all.inline
		switch {
		case exported:
			into = &all.exported
		case declares:
			into = &all.unexported
		}
		for _, text := range paragraphs(prose(group)) {
			*into = append(*into, passage{place(group), text})
		}
	}
}

// exports says whether a declaration declares an exported name.
func exports(spec ast.Spec) bool {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return spec.Name.IsExported()
	case *ast.ValueSpec:
		return slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported)
	}
	return false
}

// members calls doc for the comments of a type's fields and methods. exported says whether `go doc` shows the type. An embedded field counts as exported.
func members(of ast.Expr, exported bool, doc func(bool, ...*ast.CommentGroup)) {
	var list *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		list = of.Fields
	case *ast.InterfaceType:
		list = of.Methods
	default:
		return
	}
	for _, field := range list.List {
		shown := exported && (len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported))
		doc(shown, field.Doc, field.Comment)
		members(field.Type, shown, doc)
	}
}

// receiver is the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// prose is the text of a comment without its indented code, its directives and markers, and the notice of the license.
func prose(group *ast.CommentGroup) string {
	var lines []string
	for line := range strings.Lines(group.Text()) {
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "+") || strings.HasPrefix(line, "Copyright ") || strings.HasPrefix(line, "SPDX-") {
			continue
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}
