// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// object is a Kubernetes object: maps, lists and scalars, and in them what rows put there.
type object struct {
	kind, name string
	component  string
	tree       map[string]any
}

// id is Kind/name, as rows name objects.
func (o *object) id() string { return o.kind + "/" + o.name }

// What rows put into the tree of an object.
type (
	// text stands for a scalar, and has template actions.
	text string
	// block is the YAML of a template expression, and nothing if that is empty.
	block string
	// only is a part that is there if the template expression when is true.
	only struct {
		when string
		part any
	}
	// list is a list with something added behind its elements; dict is the same of a map.
	list struct {
		elements []any
		rest     []any
	}
	dict struct {
		fields map[string]any
		rest   []any
	}
)

// parse reads objects in the order of a manifest.
func parse(content []byte) ([]*object, error) {
	var all []*object
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		tree := map[string]any{}
		err := yaml.Unmarshal(document, &tree, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d })
		if err != nil {
			return nil, err
		}
		if len(tree) == 0 {
			continue
		}
		metadata, _ := tree["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		o := &object{tree: tree}
		o.kind, _ = tree["kind"].(string)
		o.name, _ = metadata["name"].(string)
		o.component, _ = labels["app.kubernetes.io/component"].(string)
		if o.kind == "" || o.name == "" {
			return nil, fmt.Errorf("an object has no kind or no name: %.80s", document)
		}
		all = append(all, o)
	}
	return all, nil
}

// find is the part at a path of one object.
func find(objects []*object, of workload, path string) (any, error) {
	for _, o := range objects {
		if o.id() == string(of) {
			at, err := descend(o.tree, path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of, err)
			}
			return at.get(), nil
		}
	}
	return nil, fmt.Errorf("there is no %s", of)
}

// place is where a part is: a field of a map or an element of a list.
type place struct {
	get func() any
	set func(any)
}

// descend follows a path: fields with dots between them, and [x] for the element of a list whose name is x, which begins with x, or which is at index x.
func descend(tree map[string]any, path string) (place, error) {
	at := place{get: func() any { return tree }}
	for step := range strings.SplitSeq(path, ".") {
		field, element, inList := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		fields, isMap := at.get().(map[string]any)
		if _, found := fields[field]; !isMap || !found {
			return at, fmt.Errorf("%s: there is no field %s", path, field)
		}
		at = place{get: func() any { return fields[field] }, set: func(part any) { fields[field] = part }}
		if !inList {
			continue
		}
		elements, isList := at.get().([]any)
		i := slices.IndexFunc(elements, func(e any) bool { return named(e, element) })
		if n, err := strconv.Atoi(element); err == nil && n < len(elements) {
			i = n
		}
		if !isList || i < 0 {
			return at, fmt.Errorf("%s: there is no element %s", path, element)
		}
		at = place{get: func() any { return elements[i] }, set: func(part any) { elements[i] = part }}
	}
	return at, nil
}

func named(element any, name string) bool {
	switch e := element.(type) {
	case string:
		return strings.HasPrefix(e, name)
	case text:
		return strings.HasPrefix(string(e), name)
	case map[string]any:
		return e["name"] == name
	}
	return false
}

// apply puts what rows say into objects. A row that matches nothing is an error.
func apply(rows []row, objects []*object) error {
	for _, r := range rows {
		matched := false
		for _, o := range objects {
			kind, name, _ := strings.Cut(r.object, "/")
			if o.kind != kind || name != "*" && o.name != name {
				continue
			}
			matched = true
			if err := r.change(o.tree); err != nil {
				return fmt.Errorf("row %s: %w", r.object, err)
			}
		}
		if !matched {
			return fmt.Errorf("row %s %s: there is no such object", r.object, r.path)
		}
	}
	return nil
}

// change an object as the row says.
func (r row) change(tree map[string]any) error {
	at, err := descend(tree, r.path)
	if err != nil {
		return err
	}
	part := r.put
	if part == nil {
		part = at.get()
	}
	if r.when != "" {
		part = only{r.when, part}
	}
	if r.add == "" {
		at.set(part)
		return nil
	}
	switch into := at.get().(type) {
	case map[string]any:
		if r.add == rest {
			at.set(dict{into, []any{part}})
			return nil
		}
		if _, found := into[r.add]; found {
			return fmt.Errorf("%s has a field %s: change it instead of adding it", r.path, r.add)
		}
		into[r.add] = part
	case []any:
		at.set(list{into, []any{part}})
	case list:
		at.set(list{into.elements, append(into.rest, part)})
	default:
		return fmt.Errorf("%s: nothing can be added there", r.path)
	}
	return nil
}
