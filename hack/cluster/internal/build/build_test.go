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
	sources := filepath.Join("..", "..")
	// Every file of another version pins all of Kubernetes in that version, and has checksums.
	files, err := filepath.Glob(filepath.Join(sources, "components", "kubernetes-*.mod"))
	if err != nil {
		t.Fatal(err)
	}
	choices := []string{""}
	for _, file := range files {
		choice := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "kubernetes-"), ".mod")
		choices = append(choices, choice)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if _, to, ok := strings.Cut(line, "=> k8s.io/"); ok && !strings.Contains(to, " v0."+strings.TrimPrefix(choice, "1.")+".") {
				t.Errorf("%s: %s", file, line)
			}
		}
		if _, err := os.Stat(strings.TrimSuffix(file, ".mod") + ".sum"); err != nil {
			t.Error(err)
		}
	}
	folders := map[string]string{}
	builder := Builder{Sources: sources, Layout: place.At(t.TempDir())}
	for _, choice := range choices {
		versions, err := ReadVersions(sources, choice)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(versions.Kubernetes, "v1.") || !strings.HasPrefix(versions.CoreDNS, "v1.") ||
			choice != "" && !strings.HasPrefix(versions.Kubernetes, "v"+choice+".") {
			t.Errorf("versions of %q: %+v", choice, versions)
		}
		folder, err := builder.Folder(Kube(versions))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := folders[folder]; ok {
			t.Errorf("%q and %q share the folder %s", choice, other, folder)
		}
		folders[folder] = choice
		if again, err := ReadVersions(sources, minor(versions.Kubernetes)); err != nil || again != versions {
			t.Errorf("%s is %+v, %v", minor(versions.Kubernetes), again, err)
		}
	}
	if _, err := ReadVersions(sources, "1.12"); err == nil || !strings.Contains(err.Error(), "one of 1.34, ") {
		t.Errorf("an unknown version: %v", err)
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
	got := arguments(Product{ModFile: "b.mod"}, Command{Packages: []string{"./a"}, Tags: "t", LDFlags: "-X a=b"}, "/out/")
	want := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X a=b", "-o", "/out/", "-modfile", "b.mod", "-tags", "t", "./a"}
	if !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
}
