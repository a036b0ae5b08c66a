// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/place"
)

func TestMerged(t *testing.T) {
	for name, want := range map[string]string{
		"./bin/sh":                    "usr/bin/sh",
		"./lib/x86_64-linux-gnu/a.so": "usr/lib/x86_64-linux-gnu/a.so",
		"./lib64":                     "usr/lib64",
		"./usr/bin/git":               "usr/bin/git",
		"./library/a":                 "library/a",
		"./":                          "",
		"../../etc/passwd":            "etc/passwd",
	} {
		if got := merged(name); got != want {
			t.Errorf("merged(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestLayer(t *testing.T) {
	packages := [][]*tar.Header{
		{
			{Typeflag: tar.TypeDir, Name: "./bin/", Mode: 0o755},
			{Typeflag: tar.TypeReg, Name: "./bin/dash", Mode: 0o755},
			{Typeflag: tar.TypeLink, Name: "./usr/bin/dash-too", Linkname: "./bin/dash"},
			{Typeflag: tar.TypeReg, Name: "./usr/share/man/man1/dash.1"},
		},
		{
			{Typeflag: tar.TypeReg, Name: "./bin/dash", Mode: 0o644},
			{Typeflag: tar.TypeReg, Name: "./usr/share/ca-certificates/mozilla/b.crt"},
			{Typeflag: tar.TypeReg, Name: "./usr/share/ca-certificates/mozilla/a.crt"},
		},
	}
	var out bytes.Buffer
	l := newLayer(&out)
	if err := l.skeleton(); err != nil {
		t.Fatal(err)
	}
	for _, headers := range packages {
		if err := l.addTar(archive(t, headers)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.finish(); err != nil {
		t.Fatal(err)
	}
	headers, contents := read(t, &out)
	if got := headers["bin"]; got == nil || got.Linkname != "usr/bin" {
		t.Errorf("bin is %+v, want a link", got)
	}
	if got := headers["usr/bin/dash"]; got == nil || got.Mode != 0o755 {
		t.Errorf("dash is %+v, want the first package's", got)
	}
	if got := headers["usr/bin/dash-too"]; got == nil || got.Linkname != "usr/bin/dash" {
		t.Errorf("the hard link is %+v, want its target merged too", got)
	}
	if got := headers["usr/bin/sh"]; got == nil || got.Linkname != "dash" {
		t.Errorf("sh is %+v, want a link to dash", got)
	}
	if got := headers["tmp/"]; got == nil || got.Mode != 0o1777 {
		t.Errorf("tmp is %+v", got)
	}
	if headers["usr/share/man/man1/dash.1"] != nil {
		t.Error("manual pages are in the layer")
	}
	if got, want := contents["etc/ssl/certs/ca-certificates.crt"], "./usr/share/ca-certificates/mozilla/a.crt\n./usr/share/ca-certificates/mozilla/b.crt\n"; got != want {
		t.Errorf("bundle of certificates %q, want %q", got, want)
	}
}

func TestLayerPathKnowsTheSet(t *testing.T) {
	layout := place.At("/cache")
	if a, b := (Set{Packages: []string{"git", "dash"}}).path(layout), (Set{Packages: []string{"dash", "git", "git"}}).path(layout); a != b {
		t.Errorf("%q and %q are the same set", a, b)
	}
	if a, b := (Set{Packages: []string{"git"}}).path(layout), (Set{Packages: []string{"git"}, Without: []string{"perl"}}).path(layout); a == b {
		t.Errorf("%q is not the set without perl", a)
	}
	if _, err := Layer(t.Context(), layout, Set{Packages: []string{"../x"}}); err == nil || !strings.Contains(err.Error(), "not the name") {
		t.Errorf("a path was taken for a package: %v", err)
	}
}

// archive is a tar of the headers; the content of a file is its name.
func archive(t *testing.T, headers []*tar.Header) io.Reader {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, header := range headers {
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len(header.Name))
		}
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(writer, header.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

func read(t *testing.T, archive io.Reader) (map[string]*tar.Header, map[string]string) {
	t.Helper()
	headers, contents := map[string]*tar.Header{}, map[string]string{}
	for in := tar.NewReader(archive); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		if headers[header.Name] != nil {
			t.Errorf("%s is in the layer twice", header.Name)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		headers[header.Name], contents[header.Name] = header, string(content)
	}
}
