// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// TestReadFile: only a regular file below the root is read, whatever somebody put in its place or on the way to it.
func TestReadFile(t *testing.T) {
	b := newBench(t, shop())
	outside := t.TempDir()
	put(t, outside, "secret", "secret")
	put(t, b.root, "out/report.xml", "<a/>")
	put(t, b.root, "out/large", strings.Repeat("x", 101))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink("report.xml", filepath.Join(b.root, "out/link")))
	must(os.Symlink(filepath.Join(outside, "secret"), filepath.Join(b.root, "out/way-out")))
	must(os.Symlink(outside, filepath.Join(b.root, "away")))
	must(os.Symlink("out", filepath.Join(b.root, "in")))
	must(unix.Mkfifo(filepath.Join(b.root, "out/pipe"), 0o600))
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(err)
	defer func() { _ = unix.Close(socket) }()
	must(unix.Bind(socket, &unix.SockaddrUnix{Name: filepath.Join(b.root, "out/socket")}))
	for path, want := range map[string]string{
		"out/large":              "it has more than 100 bytes",
		"out/none":               "it is not there",
		"none/report.xml":        "it is not there",
		"out/link":               "a symbolic link is in its path",
		"out/way-out":            "a symbolic link is in its path",
		"away/secret":            "a symbolic link is in its path",
		"in/report.xml":          "a symbolic link is in its path",
		"../secret":              "its path leaves the volume of the workspace",
		"out/report.xml/a":       "a part of its path is not a directory",
		"out/pipe":               "it is not a regular file",
		"out/socket":             "it is not a regular file",
		"out":                    "it is not a regular file",
		strings.Repeat("a", 300): "its path is too long",
	} {
		data, err := b.engine.ReadFile(path, 100)
		if bad, is := errors.AsType[*workspace.UnfitError](err); !is || bad.Reason != want || data != nil {
			t.Errorf("%s: %q, %v, want %q", path, data, err, want)
		}
	}
	if data, err := b.engine.ReadFile("out/report.xml", 100); err != nil || string(data) != "<a/>" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestRemoveFile: a name goes, and nothing that it leads to; directories stay.
func TestRemoveFile(t *testing.T) {
	b := newBench(t, shop())
	outside := t.TempDir()
	put(t, outside, "secret", "secret")
	put(t, b.root, "out/report.xml", "<a/>")
	for link, target := range map[string]string{"out/link": filepath.Join(outside, "secret"), "away": outside} {
		if err := os.Symlink(target, filepath.Join(b.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"out/report.xml", "out/link", "out", "away/secret", "none/report.xml", "out/none", "../x"} {
		if err := b.engine.RemoveFile(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(b.root, "out")); err != nil || len(left) != 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Errorf("a file outside of the workspace: %v", err)
	}
}
