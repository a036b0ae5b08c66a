// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// templates are the objects as templates: content by path.
func templates(objects []*object) (map[string][]byte, error) {
	made := map[string][]byte{}
	used := map[int]bool{}
	for _, o := range objects {
		i := slices.IndexFunc(places(), func(p placement) bool { return p.holds(o) })
		if i < 0 {
			return nil, fmt.Errorf("%s has no template: add a row to places", o.id())
		}
		used[i] = true
		p := places()[i]
		out := "---\n" + render(o.tree)
		if p.when != "" {
			out = "{{- if " + p.when + " }}\n" + out + "{{- end }}\n"
		}
		name := templateDir + "/" + p.file
		if made[name] == nil {
			made[name] = []byte(banner)
		}
		made[name] = append(made[name], out...)
	}
	for i, p := range places() {
		if !used[i] {
			return nil, fmt.Errorf("no object is at %s (%s%s): remove the row of places", p.file, p.kinds, p.component)
		}
	}
	return made, nil
}

// render is the YAML of a tree with template actions in it.
func render(tree map[string]any) string {
	var w writer
	w.fields(tree, nil, 0)
	return w.String()
}

type writer struct{ strings.Builder }

// line writes a line that is indented by a number of spaces. Lines of actions begin at the margin: {{- takes what is before them.
func (w *writer) line(indent int, content string) {
	w.WriteString(strings.Repeat(" ", indent) + content + "\n")
}

func (w *writer) action(content string) { w.line(0, "{{- "+content+" }}") }

// fields writes a map. What is in rest follows.
func (w *writer) fields(fields map[string]any, rest []any, indent int) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		w.part(scalar(name)+":", fields[name], indent)
	}
	for _, part := range rest {
		w.part("", part, indent)
	}
}

// elements writes a list. What is in rest follows.
func (w *writer) elements(elements, rest []any, indent int) {
	for _, e := range append(slices.Clone(elements), rest...) {
		w.part("-", e, indent)
	}
}

// part writes a field, an element of a list ("-"), or fields without a name of their own ("").
func (w *writer) part(label string, part any, indent int) {
	below := indent + 2
	if label == "-" || label == "" {
		below = indent
	}
	switch p := part.(type) {
	case only:
		w.action("if " + p.when)
		w.part(label, p.part, indent)
		w.action("end")
	case block:
		w.action("with " + string(p))
		if label != "-" && label != "" {
			w.line(indent, label)
		}
		w.action("toYaml . | nindent " + strconv.Itoa(below))
		w.action("end")
	case text:
		w.line(indent, label+" "+string(p))
	case dict:
		w.line(indent, label)
		w.fields(p.fields, p.rest, below)
	case list:
		w.line(indent, label)
		w.elements(p.elements, p.rest, indent)
	case map[string]any:
		switch {
		case len(p) == 0:
			w.line(indent, label+" {}")
		case label == "-":
			w.item(p, indent)
		default:
			w.line(indent, label)
			w.fields(p, nil, below)
		}
	case []any:
		if len(p) == 0 {
			w.line(indent, label+" []")
			return
		}
		w.line(indent, label)
		w.elements(p, nil, indent)
	default:
		for i, l := range strings.Split(scalar(p), "\n") {
			switch {
			case i == 0:
				w.line(indent, label+" "+l)
			case l == "":
				w.line(0, "")
			default:
				w.line(indent, l)
			}
		}
	}
}

// item writes a map as an element of a list: its first field stands behind the dash. A field that may not be there cannot be the first.
func (w *writer) item(fields map[string]any, indent int) {
	var inner writer
	inner.fields(fields, nil, indent+2)
	content := inner.String()
	if strings.HasPrefix(content, "{{") {
		w.line(indent, "-")
		w.WriteString(content)
		return
	}
	w.WriteString(strings.Repeat(" ", indent) + "- " + content[indent+2:])
}

// scalar is the YAML of a scalar, in which no part looks like a template action.
func scalar(value any) string {
	if n, isNumber := value.(json.Number); isNumber {
		return n.String()
	}
	out, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // it has been read from YAML
	}
	return strings.ReplaceAll(strings.TrimSuffix(string(out), "\n"), "{{", `{{ "{{" }}`)
}
