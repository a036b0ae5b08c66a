// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestPrograms: every program of cmd is built, tagged, and in the product's image and release.
func TestPrograms(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	for _, l := range []list{
		{"Makefile", "PROGRAMS", `(?m)^PROGRAMS := (.*)$`, `(\S+)`, all},
		{"Dockerfile", "go build", `(?m)^RUN go build .* -o /out/ (.*)$`, `\./cmd/(\S+)`, all},
		{"Dockerfile", "the target tidewaiter", `(?s)AS tidewaiter\n(.*)`, `/out/(\S+)`, all},
		{"hack/images.sh", "the tag of the product", `(?m)^product=.*\{(.*)\}`, `([a-z]+)`, all},
		{"hack/product.sh", "files of the image", `(?s)(.*)`, `--file "\$bin/([a-z]+):/usr/local/bin/`, all},
		{"hack/release/release.sh", "programs of a release", `for program in (.*); do`, `(\S+)`, all},
	} {
		l.check(t)
	}
}

// TestVersion: tidewaiter runs pods of the image that the committed manifest has.
func TestVersion(t *testing.T) {
	one := func(file, pattern string) string {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("%s has nothing like %s: correct this test", file, pattern)
		}
		return found[1]
	}
	versions := []string{
		one("config/default/kustomization.yaml", `newTag: (\S+)`),
		one("internal/app/preflight/main.go", `var productVersion = "(.*)"`),
	}
	if len(slices.Compact(versions)) != 1 {
		t.Errorf("the versions differ: %q", versions)
	}
}
