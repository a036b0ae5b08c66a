// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitspy observes the requests of a repository to git, so that a test can count how often it starts git or waits for an answer.
package gitspy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// New returns a git program whose reader of objects is listened to, and the number of exchanges with it until now.
func New(t testing.TB) (program string, exchanges func() int) {
	t.Helper()
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	script := "#!/bin/sh\ncase \" $* \" in\n*' cat-file '*) tee -a '" + said + "' | git \"$@\" ;;\n*) exec git \"$@\" ;;\nesac\n"
	program = filepath.Join(dir, "git")
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, func() int {
		t.Helper()
		text, err := os.ReadFile(said)
		if err != nil && !os.IsNotExist(err) { // nothing was asked yet
			t.Fatal(err)
		}
		return strings.Count(string(text), "flush\n")
	}
}

// Starts returns a git program and the commands that were started with it until now, such as "fetch".
func Starts(t testing.TB) (program string, commands func() []string) {
	t.Helper()
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	script := "#!/bin/sh\necho \"$1\" >>'" + started + "'\nexec git \"$@\"\n"
	program = filepath.Join(dir, "git")
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, func() []string {
		t.Helper()
		text, err := os.ReadFile(started)
		if err != nil && !os.IsNotExist(err) { // nothing was started yet
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
}
