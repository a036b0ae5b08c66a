// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"strings"
	"testing"
)

func TestCompileRefuses(t *testing.T) {
	tests := map[string]string{
		"file.path ==":      "1:",
		"file.pth == 'a'":   "a file has path, mode, size, linesAdded, linesRemoved, kind and role",
		"other == 'a'":      "1:1: undeclared reference to 'other'",
		"file.size > 'a'":   "1:11: found no matching overload",
		"file.path":         "it is a string: write an expression that is true where the check is violated",
		"file.path +\n\n 1": "1:11: found no matching overload",
		"dyn(true)":         "it is a dyn",
		"":                  "1:",
	}
	for expression, want := range tests {
		t.Run(expression, func(t *testing.T) {
			_, err := Compile(expression)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, want)
			}
		})
	}
}

func TestEvaluate(t *testing.T) {
	file := map[string]any{
		"file.path": "db/a.sql", "file.mode": "100644", "file.size": int64(12), "file.linesAdded": int64(501),
		"file.linesRemoved": int64(0), "file.kind": "Added", "file.role": "dba",
	}
	tests := map[string]struct {
		violated bool
		fails    string
	}{
		"file.path.endsWith('.sql') && file.linesAdded > 500":     {violated: true},
		"file.path.matches('^web/')":                              {violated: false},
		"file.kind in ['Added', 'Deleted'] && file.role != 'dba'": {violated: false},
		"file.size / file.linesRemoved > 1":                       {fails: "division by zero"},
		"[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, a + b + c + d >= 0))))": {fails: "cost limit exceeded"},
	}
	for expression, tt := range tests {
		t.Run(expression, func(t *testing.T) {
			program, err := Compile(expression)
			if err != nil {
				t.Fatal(err)
			}
			violated, cost, err := program(file)
			if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("error %v, want %q", err, tt.fails)
			}
			if violated != tt.violated || cost == 0 {
				t.Errorf("violated %t at cost %d, want %t", violated, cost, tt.violated)
			}
		})
	}
}
