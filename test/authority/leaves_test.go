// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"encoding/json"
	"reflect"
	"slices"
)

// leaves are the fields of a structure that hold no others, by their names from the top. What lists and maps hold has [] in its name; a
// type with a text of its own, such as a quantity, is one field.
func leaves(name string, kind reflect.Type) []string {
	text := reflect.TypeFor[json.Marshaler]()
	switch {
	case kind.Kind() == reflect.Pointer:
		return leaves(name, kind.Elem())
	case kind.Implements(text), reflect.PointerTo(kind).Implements(text), kind == reflect.TypeFor[[]byte]():
		return []string{name}
	case kind.Kind() == reflect.Slice, kind.Kind() == reflect.Map:
		return leaves(name+"[]", kind.Elem())
	case kind.Kind() != reflect.Struct:
		return []string{name}
	}
	var list []string
	for below, of := range fieldsOf(kind) {
		if name != "" {
			below = name + "." + below
		}
		list = append(list, leaves(below, of)...)
	}
	if len(list) == 0 { // it says something by being there
		return []string{name}
	}
	slices.Sort(list)
	return list
}
