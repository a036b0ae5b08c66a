// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIgnored: what is said to be left out is what a capture leaves out.
func TestIgnored(t *testing.T) {
	b := newBench(t, map[string]string{
		".gitignore": "*.log\nbuild/\n!keep.log\n", "web/.gitignore": "/tmp\n", "web/a.html": "a", "build/kept.txt": "tracked",
	})
	paths := []string{
		"x.log", "keep.log", "web/deep/y.log", "build/new.txt", "build/kept.txt", "other/build/z", "web/tmp", "web/tmp2", "web/b.html", "tmp", "build.txt",
	}
	ignored, err := b.engine.Ignored(t.Context(), paths)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"x.log", "web/deep/y.log", "build/new.txt", "other/build/z", "web/tmp"}
	if diff := cmp.Diff(want, ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	for _, path := range paths {
		put(t, b.root, path, "new")
	}
	tree := b.capture().Tree
	base, now, err := b.engine.Trees()
	if err != nil {
		t.Fatal(err)
	}
	if now.ID != tree || base.Lookup("web/b.html") != nil {
		t.Errorf("the engine has %s, and %s was captured", now.ID, tree)
	}
	var missing []string
	for _, path := range paths {
		if now.Lookup(path) == nil {
			missing = append(missing, path)
		}
	}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Errorf("a capture leaves out (-want +got):\n%s", diff)
	}
}
