// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

func TestRestoreEverything(t *testing.T) {
	b := newBench(t, shop())
	put(t, b.root, "README.md", "wrong\n")
	put(t, b.root, "extra/deep/file", "not in the base\n")
	put(t, b.root, "extra/deep/kept.log", "ignored, kept\n")
	put(t, b.root, "gone/only/dirs/x", "x")
	put(t, b.root, "build/out", "ignored, kept\n")
	put(t, b.root, "hide/.git/hooks/x", "nested repository\n")
	if err := errors.Join(
		os.RemoveAll(filepath.Join(b.root, "src")), os.Symlink("/etc", filepath.Join(b.root, "src")),
		os.RemoveAll(filepath.Join(b.root, "docs/a")), os.WriteFile(filepath.Join(b.root, "docs/a"), nil, 0o644),
		os.Remove(filepath.Join(b.root, ".gitignore")), os.Mkdir(filepath.Join(b.root, ".gitignore"), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	before := b.capture()
	r, err := b.engine.Restore(t.Context(), b.base)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.reference(); got != r.Tree || len(b.capture().Changes) != 0 {
		t.Errorf("restored %s, the workspace hashes to\n%s", r.Tree, b.listing(got))
	}
	for path, want := range map[string]bool{"build/out": true, "extra/deep/kept.log": true, "hide": false, "gone": false, "extra/deep/file": false} {
		if _, err := os.Lstat(filepath.Join(b.root, path)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	if _, err := b.engine.Restore(t.Context(), before.Tree); err != nil {
		t.Fatal(err)
	}
	if s := b.capture(); s.Tree != before.Tree {
		t.Errorf("back to the state before: %s, want %s", s.Tree, before.Tree)
	}
	if target, err := os.Readlink(filepath.Join(b.root, "src")); target != "/etc" {
		t.Errorf("link: %q, %v", target, err)
	}
}

func TestRestorePaths(t *testing.T) {
	b := newBench(t, shop())
	put(t, b.root, "README.md", "mine\n")
	put(t, b.root, "src/main.go", "wrong\n")
	put(t, b.root, "src/bad.go", "wrong\n")
	put(t, b.root, "docs/new.md", "mine\n")
	b.capture()
	if _, err := b.engine.Restore(t.Context(), b.base, "src", "docs/a/b/c.md"); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, c := range b.capture().Changes {
		left = append(left, c.Path)
	}
	if diff := cmp.Diff([]string{"README.md", "docs/new.md"}, left); diff != "" {
		t.Errorf("changes left (-want +got):\n%s", diff)
	}
}

// TestRestoreBreaksLinksFromOutside: a file that looks restored and can be changed from elsewhere is not.
func TestRestoreBreaksLinksFromOutside(t *testing.T) {
	b := newBench(t, shop())
	b.capture()
	outside := filepath.Join(filepath.Dir(b.root), "outside")
	if err := os.Link(filepath.Join(b.root, "README.md"), outside); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Restore(t.Context(), b.base); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(outside, []byte("from elsewhere\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(b.root, "README.md")); err != nil || string(got) != b.files["README.md"] {
		t.Errorf("content %q, %v: it changed through its other name", got, err)
	}
}

func TestGitlinksStay(t *testing.T) {
	b := newBench(t, shop())
	const linked = "0123456789012345678901234567890123456789"
	tree := b.git([]byte("160000 commit "+linked+"\tsub\n100644 blob "+b.git([]byte("x"), "hash-object", "-w", "--stdin")+"\tfile\n"), "mktree")
	b.base = parse(t, b.git(nil, "commit-tree", "-m", "Base with a submodule", tree))
	if err := b.engine.Reset(t.Context(), b.base, b.base); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Restore(t.Context(), b.base); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(b.root, "sub")
	if st, err := os.Stat(sub); err != nil || !st.IsDir() {
		t.Fatalf("no directory for the submodule: %v", err)
	}
	for _, what := range []string{"laid out", "removed", "filled", "emptied"} {
		switch what {
		case "removed":
			os.Remove(sub)
		case "filled":
			put(t, sub, "file", "hidden from git otherwise\n")
		case "emptied":
			os.Remove(filepath.Join(sub, "file"))
		}
		s := b.capture()
		want := "100644 file\n160000 sub"
		if what == "filled" {
			want = "100644 file\n100644 sub/file"
		}
		if got := b.listing(s.Tree); got != want {
			t.Errorf("%s: tree\n%s", what, got)
		}
	}
}

func TestAgentGit(t *testing.T) {
	files := shop()
	files[".gitattributes"] = "*.md text eol=crlf\n*.go filter=evil\n"
	b := newBench(t, files)
	put(t, b.root, ".git/hooks/post-checkout", "+x #!/bin/sh\n")
	err := b.engine.PlaceAgentGit(t.Context(), workspace.AgentGit{Commit: b.base, Branch: "tidewaiter/add-login", AuthorName: `A "B"`, AuthorEmail: "a@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	agent := func(args ...string) string { return runGit(t, nil, nil, append([]string{"-C", b.root}, args...)...) }
	if out := agent("status", "--porcelain=v1", "--branch"); out != "## tidewaiter/add-login" {
		t.Errorf("status of an untouched workspace:\n%s", out)
	}
	if out := agent("log", "--format=%s"); out != "Base" {
		t.Errorf("log: %s", out)
	}
	if out := agent("fsck", "--strict"); strings.Contains(out, "error") {
		t.Errorf("fsck: %s", out)
	}
	if out := agent("config", "user.name"); out != `A "B"` {
		t.Errorf("user.name %q", out)
	}
	put(t, b.root, "src/main.go", "package main // changed\n")
	if out := agent("diff", "--stat"); !strings.Contains(out, "src/main.go") {
		t.Errorf("diff: %s", out)
	}
	for _, name := range []string{"hooks/post-checkout", "objects/info/alternates"} {
		if _, err := os.Stat(filepath.Join(b.root, ".git", name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	agent("commit", "-q", "-a", "-m", "The agent's own")
	if s := b.capture(); len(s.Changes) != 1 || s.Changes[0].Path != "src/main.go" {
		t.Errorf("changes %v", s.Changes)
	}
}

func TestWatch(t *testing.T) {
	b := newBench(t, shop())
	if ok, _ := b.engine.Watching(); ok {
		t.Error("watching before Watch")
	}
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ok, why := b.engine.Watching(); !ok {
		t.Fatalf("not watching: %s", why)
	}
	put(t, b.root, "README.md", "changed\n")
	put(t, b.root, "new/deep/dir/file", "new\n")
	put(t, b.root, ".git/index", "the agent's own\n")
	b.awaitChanged(t, 3)
	put(t, b.root, "new/deep/dir/other", "watched by now\n")
	b.awaitChanged(t, 4)
	put(t, b.root, "build/out/x", "ignored\n")
	s := b.capture()
	if n := b.engine.Changed(); n != 0 {
		t.Errorf("%d paths changed after a capture", n)
	}
	if got := b.reference(); got != s.Tree {
		t.Errorf("tree\n%s\nwant\n%s", b.listing(s.Tree), b.listing(got))
	}
}

// awaitChanged waits until the watcher has seen at least n paths.
func (b *bench) awaitChanged(t *testing.T, n int) {
	t.Helper()
	limit := time.After(time.Minute)
	for b.engine.Changed() < n {
		select {
		case <-b.engine.Wake():
		case <-limit:
			t.Fatalf("%d paths changed, want %d", b.engine.Changed(), n)
		}
	}
}
