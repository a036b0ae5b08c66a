// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
)

// TestReplace: the content is there, only its owner reads it, and nothing else is left, also of a crash before.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mark")
	if err := os.WriteFile(path+durable.TempSuffix, []byte("half of something long"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"one", ""} {
		if err := durable.Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestReplaceThatFails leaves the old content and no temporary file, and names the file.
func TestReplaceThatFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mark") // a directory that is not empty cannot be replaced
	if err := os.MkdirAll(filepath.Join(path, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(path, []byte("new")); err == nil || !strings.Contains(err.Error(), "replace mark") {
		t.Errorf("%v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if err := durable.Replace(filepath.Join(dir, "nowhere", "mark"), nil); err == nil {
		t.Error("written to a directory that does not exist")
	}
	if err := durable.SyncDir(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("synced a directory that does not exist")
	}
}
