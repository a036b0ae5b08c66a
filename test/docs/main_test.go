// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the documentation to what is so: its links lead somewhere, and the API server takes what it tells people to apply.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// env is set once by TestMain.
var env *kubetest.Env

func TestMain(m *testing.M) {
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

// root of the checkout, from this package.
const root = "../.."

// pages are the texts of all Markdown files that people read, by path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	read := func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		all[name] = string(content)
		return err
	}
	for _, pattern := range []string{"*.md", "config/*.md", "hack/*/*.md", "images/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if err := read(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		return read(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("%d pages: they are elsewhere", len(all))
	}
	return all
}
