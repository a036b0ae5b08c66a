// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// api is a package with two faults: a name of a field that is not that of its JSON, and a boolean.
const api = `package api

// Thing is a thing.
type Thing struct {
	// Name of the thing.
	// +optional
	Name *string ` + "`json:\"name,omitempty\"`" + `
	// open says whether it is open.
	// +optional
	Open *bool ` + "`json:\"open,omitempty\"`" + `
}
`

const linters = `
linters: {disable: ["*"], enable: [commentstart, nobools]}
`

// TestRun: what a linter finds fails, unless it is excepted; an exception needs a reason and a finding.
func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		exceptions string
		want       []string
	}{
		"nothing is excepted":  {want: []string{"api.go:5:2: commentstart: ", "api.go:10:2: nobools: "}},
		"one is excepted":      {exceptions: `exceptions: [{linter: nobools, message: Thing.Open, reason: it is a switch}]`, want: []string{"commentstart: "}},
		"without a reason":     {exceptions: `exceptions: [{linter: nobools, message: Thing.Open}]`, want: []string{"needs linter, message and reason"}},
		"of another linter":    {exceptions: `exceptions: [{linter: nobools, message: Thing.Name, reason: none}]`, want: []string{"commentstart: ", "nobools: ", "no finding of nobools matches"}},
		"everything is":        {exceptions: `exceptions: [{linter: nobools, message: Open, reason: a}, {linter: commentstart, message: name, reason: b}]`},
		"an unknown key":       {exceptions: `except: []`, want: []string{`unknown field "except"`}},
		"an expression is not": {exceptions: `exceptions: [{linter: nobools, message: "(", reason: a}]`, want: []string{"missing closing )"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"go.mod": "module example.com/api\n\ngo 1.26\n", "api.go": api, "config.yaml": linters + tc.exceptions} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := run(filepath.Join(dir, "config.yaml"), dir, "./...")
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
