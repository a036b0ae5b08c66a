// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	named    = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// tests are all tests of the repository by name, with the folders of their packages.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(content), -1) {
			all[match[1]] = append(all[match[1]], filepath.ToSlash(folder))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNamedTestsAreThere: a page that says which test shows something names one that exists. Decision records tell of their day.
func TestNamedTestsAreThere(t *testing.T) {
	tests := tests(t)
	count := 0
	for name, text := range pages(t) {
		if strings.HasPrefix(name, "docs/adr/") {
			continue
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			if count++; tests[match[1]] == nil {
				t.Errorf("%s names the test %s, which does not exist", name, match[1])
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d tests are named", count)
	}
}
