// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaves lists the fields of the API's types that hold no others, so that a test sees which one nothing reads.
package leaves

import (
	"reflect"
	"strings"
)

// Of returns the paths in JSON of the leaves of a type. Lists have no index in them. What other packages declare is a leaf as a whole.
func Of[T any]() []string {
	root := reflect.TypeFor[T]()
	return below("", root, root.PkgPath())
}

func below(at string, of reflect.Type, pkg string) (paths []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != pkg || of.NumField() == 0 {
		return []string{at}
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		path := strings.TrimPrefix(at+"."+name, ".")
		if name == "" { // it is embedded
			path = at
		}
		paths = append(paths, below(path, field.Type, pkg)...)
	}
	return paths
}
