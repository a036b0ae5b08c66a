// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/place"
)

func TestReadVersions(t *testing.T) {
	versions, err := ReadVersions(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(versions.Kubernetes, "v1.") || !strings.HasPrefix(versions.CoreDNS, "v1.") {
		t.Errorf("versions %+v", versions)
	}
}

func TestFolderChangesWithWhatDecides(t *testing.T) {
	sources := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(sources, "m", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m")
	write("used/main.go", "package main")
	write("other/main.go", "package main")
	builder := Builder{Sources: sources, Layout: place.At(t.TempDir())}
	product := Product{Name: "p", Module: "m", Sources: []string{"used"}, Commands: []Command{{Packages: []string{"./used"}}}}
	folder := func(p Product) string {
		t.Helper()
		path, err := builder.Folder(p)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := folder(product)
	write("used/main_test.go", "package main")
	write("other/main.go", "package main // changed")
	if folder(product) != before {
		t.Error("a test or another program changed it")
	}
	tagged := product
	tagged.Commands = []Command{{Packages: []string{"./used"}, Tags: "t"}}
	if folder(tagged) == before {
		t.Error("a build tag did not change it")
	}
	write("go.mod", "module m // changed")
	modules := folder(product)
	if modules == before {
		t.Error("the module file did not change it")
	}
	write("used/main.go", "package main // changed")
	if folder(product) == modules {
		t.Error("the program's source did not change it")
	}
}

func TestArguments(t *testing.T) {
	got := arguments(Command{Packages: []string{"./a"}, Tags: "t", LDFlags: "-X a=b"}, "/out/")
	want := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X a=b", "-o", "/out/", "-tags", "t", "./a"}
	if !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
}
