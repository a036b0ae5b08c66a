// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

// TestFilesAreFresh: what is committed is what config and the tables say.
func TestFilesAreFresh(t *testing.T) {
	made, err := files(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%v: run `make chart`", err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale, run `make chart` (-want +got):\n%s", name, diff)
		}
	}
	if stale, err := staleTemplates(root, made); err != nil || len(stale) > 0 {
		t.Errorf("%v are generated no more, %v: run `make chart`", stale, err)
	}
}

const deployment = `
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  args: [--port=1, --view]
  message: |-
    Use {{ braces }}
    on two lines
  containers:
  - name: web
    image: web:1
    ports: []
`

// TestRows: each way to change an object, and what comes of it.
func TestRows(t *testing.T) {
	for name, test := range map[string]struct {
		row  row
		want string
	}{
		"a scalar":                         {row{path: "spec.replicas", put: text("{{ .n }}")}, "  replicas: {{ .n }}\n"},
		"an element by prefix":             {row{path: "spec.args[--port=]", put: text("--port={{ .n }}")}, "  args:\n  - --port={{ .n }}\n  - --view\n"},
		"an element that may not be there": {row{path: "spec.args[--view]", when: ".view"}, "  - --port=1\n{{- if .view }}\n  - --view\n{{- end }}\n"},
		"an element more":                  {row{path: "spec.args", add: "-", put: block(".more")}, "  - --view\n{{- with .more }}\n{{- toYaml . | nindent 2 }}\n{{- end }}\n"},
		"a field more":                     {row{path: "spec.containers[web]", add: "env", put: block(".env")}, "  containers:\n  -\n{{- with .env }}\n    env:\n{{- toYaml . | nindent 6 }}\n{{- end }}\n    image: web:1\n"},
		"fields that users name":           {row{path: "metadata", add: rest, put: block(".labels")}, "metadata:\n  name: web\n{{- with .labels }}\n{{- toYaml . | nindent 2 }}\n{{- end }}\n"},
		"an element by index":              {row{path: "spec.containers[0].image", put: text("x")}, "  - image: x\n    name: web\n    ports: []\n"},
		"nothing, and braces are text":     {row{path: "spec.replicas"}, "  message: |-\n    Use {{ \"{{\" }} braces }}\n    on two lines\n"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := parse([]byte(deployment))
			if err != nil {
				t.Fatal(err)
			}
			test.row.object = "Deployment/web"
			if err := apply([]row{test.row}, objects); err != nil {
				t.Fatal(err)
			}
			if got := render(objects[0].tree); !strings.Contains(got, test.want) {
				t.Errorf("got\n%s\nwant in it\n%s", got, test.want)
			}
		})
	}
}

// TestRowsThatMatchNothing: a row about something that is not there is an error, so that no value loses its effect unseen.
func TestRowsThatMatchNothing(t *testing.T) {
	for want, r := range map[string]row{
		"there is no such object":    {object: "Deployment/api", path: "spec.replicas"},
		"there is no field paused":   {object: "Deployment/*", path: "spec.paused"},
		"there is no element db":     {object: "Deployment/*", path: "spec.containers[db].image"},
		"there is no element --dry":  {object: "Deployment/*", path: "spec.args[--dry]"},
		"nothing can be added there": {object: "Deployment/*", path: "spec.replicas", add: "x"},
		"has a field replicas":       {object: "Deployment/*", path: "spec", add: "replicas", put: text("1")},
	} {
		objects, err := parse([]byte(deployment))
		if err != nil {
			t.Fatal(err)
		}
		if err := apply([]row{r}, objects); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", r, err, want)
		}
	}
}
