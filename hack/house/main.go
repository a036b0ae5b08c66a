// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command house prints figures of the code: the largest packages, files, functions and types, and functions that take what could be their
// receiver. It also prints duplicate lines, and exported names that nobody uses. No figure fails a build: it only says where to look.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

func main() {
	root, most := flag.String("root", ".", "folder of the checkout"), flag.Int("most", 15, "rows of each table")
	flag.Parse()
	h, err := read(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
	h.print(os.Stdout, *most)
}

// figure is a row of a table.
type figure struct {
	name string
	n    int
	more string
}

// kind is a type of the code.
type kind struct {
	methods int
	// beside are functions of its package whose first argument is the type, and that belong to it by that.
	beside []string
}

// house is what was counted.
type house struct {
	packages, tests, files, functions map[string]int
	kinds                             map[string]*kind
	// exported are the names that packages below internal export, with what they are of. Uses are those that other packages name, and called those that somebody
	// names who is no test.
	exported     map[string]string
	uses, called map[string]bool
	copies       *copies
}

// read all Go files below a folder that people have written.
func read(root string) (*house, error) {
	h := &house{
		packages: map[string]int{}, tests: map[string]int{}, files: map[string]int{}, functions: map[string]int{}, kinds: map[string]*kind{},
		exported: map[string]string{}, uses: map[string]bool{}, called: map[string]bool{}, copies: newCopies(),
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "bin" || name == "applyconfiguration" || strings.HasPrefix(name, ".") && path != root):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "zz_generated"):
			return nil
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return h.file(path, filepath.ToSlash(relative))
	})
	return h, err
}

// file counts one.
func (h *house) file(path, name string) error {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the checkout
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg, lines := name[:max(strings.LastIndex(name, "/"), 0)], bytes.Count(text, []byte("\n"))
	test := strings.HasSuffix(name, "_test.go")
	h.names(f, pkg, test)
	if test {
		h.tests[pkg] += lines
		return nil
	}
	h.packages[pkg] += lines
	h.files[name] = lines
	h.copies.read(name, string(text))
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			h.function(set, pkg, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				h.declare(pkg, s)
			}
		}
	}
	return nil
}

// function is counted, and belongs to a type.
func (h *house) function(set *token.FileSet, pkg string, d *ast.FuncDecl) {
	name := d.Name.Name
	switch {
	case d.Recv != nil:
		of := typeName(d.Recv.List[0].Type)
		h.kind(pkg, of).methods++
		name = of + "." + name
	default:
		h.export(pkg, name, "function")
		if p := d.Type.Params.List; len(p) > 0 {
			if of := typeName(p[0].Type); of != "" && !strings.Contains(of, ".") && !universe(of) {
				k := h.kind(pkg, of)
				k.beside = append(k.beside, name)
			}
		}
	}
	h.functions[pkg+"."+name] = set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
}

// declare a type, or values.
func (h *house) declare(pkg string, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		h.kind(pkg, s.Name.Name)
		h.export(pkg, s.Name.Name, "type")
	case *ast.ValueSpec:
		for _, name := range s.Names {
			h.export(pkg, name.Name, "value")
		}
	}
}

func (h *house) export(pkg, name, what string) {
	if ast.IsExported(name) && strings.HasPrefix(pkg, "internal/") {
		h.exported[pkg+"."+name] = what
	}
}

func (h *house) kind(pkg, name string) *kind {
	k := h.kinds[pkg+"."+name]
	if k == nil {
		k = &kind{}
		h.kinds[pkg+"."+name] = k
	}
	return k
}

// names that a file takes from other packages of the module, and from its own.
func (h *house) names(f *ast.File, pkg string, test bool) {
	const module = "github.com/tidewaiter/tidewaiter/"
	packages := map[string]string{}
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if !strings.HasPrefix(path, module) {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		packages[name] = strings.TrimPrefix(path, module)
	}
	declared := map[*ast.Ident]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, is := n.X.(*ast.Ident); is && packages[x.Name] != "" {
				h.uses[packages[x.Name]+"."+n.Sel.Name] = true
				h.called[packages[x.Name]+"."+n.Sel.Name] = h.called[packages[x.Name]+"."+n.Sel.Name] || !test
			}
		case *ast.FuncDecl:
			declared[n.Name] = true
		case *ast.TypeSpec:
			declared[n.Name] = true
		case *ast.ValueSpec:
			for _, name := range n.Names {
				declared[name] = true
			}
		case *ast.Ident:
			if !test && !declared[n] {
				h.called[pkg+"."+n.Name] = true
			}
		}
		return true
	})
}

// typeName of a receiver or an argument; "" for one without a name.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	}
	return ""
}

// universe says that a type is none of a package.
func universe(name string) bool {
	return unicode.IsLower(rune(name[0])) && token.Lookup(name) == token.IDENT && slices.Contains(basic, name)
}

var basic = []string{
	"any", "bool", "byte", "error", "float32", "float64", "int", "int8", "int16", "int32", "int64", "rune", "string", "uint", "uint8", "uint16", "uint32", "uint64",
}

// print the page.
func (h *house) print(w io.Writer, most int) {
	var kinds, beside, alone, dead []figure
	for name, k := range h.kinds {
		kinds = append(kinds, figure{name, k.methods + len(k.beside), fmt.Sprintf("%d methods, %d functions", k.methods, len(k.beside))})
		if len(k.beside) > 0 && k.methods > 0 {
			slices.Sort(k.beside)
			beside = append(beside, figure{name, len(k.beside), strings.Join(k.beside[:min(len(k.beside), 8)], " ")})
		}
	}
	for name, what := range h.exported {
		switch {
		case !h.called[name] && !strings.HasPrefix(name, "internal/testkit/"):
			dead = append(dead, figure{name: name})
		case !h.uses[name] && what == "function":
			alone = append(alone, figure{name: name})
		}
	}
	lines, tests := 0, 0
	var packages []figure
	for name, n := range h.packages {
		lines += n
		packages = append(packages, figure{name, n, fmt.Sprintf("%d lines of tests", h.tests[name])})
	}
	for _, n := range h.tests {
		tests += n
	}
	fmt.Fprintf(w, "%d packages, %d files, %d lines, %d lines of tests\n", len(h.packages), len(h.files), lines, tests)
	table(w, most, "packages by lines", packages)
	table(w, most, "files by lines", rows(h.files))
	table(w, most, "functions by lines", rows(h.functions))
	table(w, most, "types by methods, and functions of their package that take them first", kinds)
	table(w, most, "functions that take what could be their receiver", beside)
	table(w, most, fmt.Sprintf("lines that stand in two places, %d or more in a row", run), h.copies.figures())
	table(w, len(alone), "functions below internal that are exported, and named by no other package", alone)
	table(w, len(dead), "what is exported below internal, and named by nobody but tests", dead)
}

func rows(counts map[string]int) (list []figure) {
	for name, n := range counts {
		list = append(list, figure{name: name, n: n})
	}
	return list
}

func table(w io.Writer, most int, title string, list []figure) {
	slices.SortFunc(list, func(a, b figure) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	fmt.Fprintf(w, "\n%s (%d)\n", title, len(list))
	for _, f := range list[:min(most, len(list))] {
		if f.n > 0 {
			fmt.Fprintf(w, "  %6d  %s  %s\n", f.n, f.name, f.more)
		} else {
			fmt.Fprintf(w, "  %s\n", f.name)
		}
	}
}
