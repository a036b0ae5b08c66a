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

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// smallVolume mounts a volume of so many bytes for the time of the test.
func smallVolume(t *testing.T, dir, size string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("a small volume is needed: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// fill writes a file until the volume is full.
func fill(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// TestFullVolumeIsNotTrusted: the test of the volume must not touch a page that the volume has no room for, and what could
// not be tested must not be relied on.
func TestFullVolumeIsNotTrusted(t *testing.T) {
	root := t.TempDir()
	smallVolume(t, root, "64k")
	fill(t, filepath.Join(root, "filler"))
	repo, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "repo.git"), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	e, err := workspace.Open(t.Context(), workspace.Options{Root: root, Repository: repo, Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a := e.Assumptions()
	if !a.Full || a.Leases || a.MappedWrites || a.ChangeTime || a.Watches {
		t.Errorf("a full volume was tested and found to do something: %+v", a)
	}
	if _, err := os.Lstat(filepath.Join(root, ".tidewaiter-probe")); err == nil {
		t.Error("the file of the test is still there")
	}
}

// TestFullWorkspaceIsClearedOfIgnoredFiles: what Git ignores gives way to what is restored, where the caller says so.
func TestFullWorkspaceIsClearedOfIgnoredFiles(t *testing.T) {
	dir := t.TempDir()
	smallVolume(t, dir, "1m")
	files := shop()
	files[".gitignore"] = "build/\n*.log\n"
	files["large"] = strings.Repeat("0123456789abcdef", 8<<10)
	b := openBench(t.Context(), t, dir, t.TempDir(), files)
	t.Cleanup(b.close)
	b.capture()
	if err := os.Remove(filepath.Join(b.root, "large")); err != nil {
		t.Fatal(err)
	}
	put(t, b.root, "debug.log", "ignored\n")
	fill(t, filepath.Join(b.root, "build/out/filler"))
	if _, err := b.engine.Restore(t.Context(), b.base); !errors.Is(err, git.ErrFull) {
		t.Fatalf("on a full volume: %v", err)
	}
	if n, err := b.engine.ClearIgnored(t.Context()); err != nil || n == 0 {
		t.Fatalf("%d names removed: %v", n, err)
	}
	if _, err := b.engine.Restore(t.Context(), b.base); err != nil {
		t.Fatal(err)
	}
	if s := b.capture(); len(s.Changes) != 0 || len(s.Found) != 0 {
		t.Errorf("changes %v, found %v", s.Changes, s.Found)
	}
	if _, err := os.Lstat(filepath.Join(b.root, "build/out/filler")); err == nil {
		t.Error("the volume is as full as it was")
	}
	put(t, b.root, "debug.log", "ignored\n")
	if err := os.Remove(filepath.Join(b.root, "large")); err != nil {
		t.Fatal(err)
	}
	if r, err := b.engine.Restore(t.Context(), b.base); err != nil || r.Cleared != 0 {
		t.Errorf("with room: %v, %d ignored names removed", err, r.Cleared)
	}
}

// TestClearIgnored empties a volume that was found full before anything is laid out.
func TestClearIgnored(t *testing.T) {
	dir := t.TempDir()
	smallVolume(t, dir, "1m")
	files := shop()
	files[".gitignore"] = "build/\n"
	b := openBench(t.Context(), t, dir, t.TempDir(), files)
	t.Cleanup(func() { b.close() })
	put(t, b.root, ".git/HEAD", "the agent's own\n")
	put(t, b.root, "mine.txt", "not ignored\n")
	fill(t, filepath.Join(b.root, "build/filler"))
	if err := b.engine.Close(); err != nil {
		t.Fatal(err)
	}
	b.engine = b.open()
	if !b.engine.Assumptions().Full {
		t.Fatal("the volume is not found full")
	}
	n, err := b.engine.ClearIgnored(t.Context())
	if err != nil || n == 0 {
		t.Fatalf("%d names removed: %v", n, err)
	}
	if a := b.engine.Assumptions(); a.Full || !a.ChangeTime || !a.Leases {
		t.Errorf("the volume was not tested again: %+v", a)
	}
	s := b.capture()
	if len(s.Changes) != 1 || s.Changes[0].Path != "mine.txt" || s.Changes[0].Kind != judge.Added {
		t.Errorf("changes %v", s.Changes)
	}
	if _, err := os.Lstat(filepath.Join(b.root, "build")); err == nil {
		t.Error("ignored files are still there")
	}
}
