// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import "testing"

func TestPaths(t *testing.T) {
	p := NewPaths([]string{"migrations", "*.sql", "web/**/*.html", "["})
	for path, want := range map[string]bool{
		"migrations/1/up.go": true, "a/b.sql": true, "web/a/b.html": true, "web/a.html": true, "web/a.css": false, "Migrations/1": false, "[": false,
	} {
		if p.Has(path) != want {
			t.Errorf("%s is among them: %v", path, !want)
		}
	}
	if NewPaths(nil).Has("a") {
		t.Error("no pattern matches a path")
	}
}
