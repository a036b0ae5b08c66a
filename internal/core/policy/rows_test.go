// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"testing"
)

// TestEveryFieldHasARow: a field of Rules or of Effective without a row would never be merged or validated.
func TestEveryFieldHasARow(t *testing.T) {
	var r Rules
	var e Effective
	paths, inRules, inEffective := map[string]bool{}, map[any]string{}, map[any]string{}
	for _, row := range Rows() {
		if row.Path == "" || row.Purpose == "" || row.Allowed == "" || row.Builtin == "" || row.Merging == "" || row.merge == nil {
			t.Errorf("row %q says too little: %+v", row.Path, row)
		}
		if paths[row.Path] {
			t.Errorf("%s has two rows", row.Path)
		}
		paths[row.Path] = true
		if other := inRules[row.rules(&r)]; other != "" {
			t.Errorf("%s and %s are the same field of Rules", other, row.Path)
		}
		if other := inEffective[row.effective(&e)]; other != "" {
			t.Errorf("%s and %s are the same field of Effective", other, row.Path)
		}
		inRules[row.rules(&r)], inEffective[row.effective(&e)] = row.Path, row.Path
	}
	for _, field := range leaves(reflect.ValueOf(&r).Elem()) {
		if inRules[field.Addr().Interface()] == "" {
			t.Errorf("a field of Rules has no row: %s", field.Type())
		}
	}
	// What is said of the merge itself is no value.
	said := map[any]bool{&e.Hash: true, &e.Sources: true, &e.Conflicts: true, &e.Enforcement: true, &e.SuspendedBy: true, &e.Origins: true}
	for _, field := range leaves(reflect.ValueOf(&e).Elem()) {
		if p := field.Addr().Interface(); inEffective[p] == "" && !said[p] {
			t.Errorf("a field of Effective has no row: %s", field.Type())
		}
	}
}

// leaves are the fields of a struct and of the structs in it.
func leaves(v reflect.Value) []reflect.Value {
	var all []reflect.Value
	for _, f := range v.Fields() {
		if f.Kind() == reflect.Struct {
			all = append(all, leaves(f)...)
		} else {
			all = append(all, f)
		}
	}
	return all
}
