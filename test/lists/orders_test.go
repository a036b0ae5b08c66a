// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestOrdersAreRead: what a watchdog is ordered, something in its program looks at. That is seen by the names of fields, so that a field with the
// name of another one may be missed.
func TestOrdersAreRead(t *testing.T) {
	read := map[string]bool{}
	for _, folder := range []string{"internal/app/watchdog", "internal/core", "internal/pod"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if selector, is := n.(*ast.SelectorExpr); is {
					read[selector.Sel.Name] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fields := orderedFields(reflect.TypeFor[protocol.Orders](), map[reflect.Type]bool{})
	if len(fields) < 30 {
		t.Errorf("%d fields of orders were looked at", len(fields))
	}
	for _, field := range fields {
		if _, name, _ := strings.Cut(field, "."); !read[name] {
			t.Errorf("protocol.%s: the manager orders it, and nothing in the watchdog reads it", field)
		}
	}
}

// orderedFields are the fields of a type of the protocol, and of those inside, as Type.Field.
func orderedFields(of reflect.Type, seen map[reflect.Type]bool) (fields []string) {
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] || of.PkgPath() != reflect.TypeFor[protocol.Orders]().PkgPath() {
		return nil
	}
	seen[of] = true
	for f := range of.Fields() {
		fields = append(append(fields, of.Name()+"."+f.Name), orderedFields(f.Type, seen)...)
	}
	return fields
}
