// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

func shop() map[string]string {
	return map[string]string{
		"README.md":       "shop\n",
		".gitignore":      "*.log\n/build/\nvendor/\n",
		"src/main.go":     "package main\n",
		"src/run.sh":      "+x #!/bin/sh\n",
		"src/link":        "-> main.go",
		"docs/a/b/c.md":   "deep\n",
		"vendor/kept.txt": "tracked although ignored\n",
	}
}

func TestLayoutEqualsBase(t *testing.T) {
	b := newBench(t, shop())
	s := b.capture()
	want := parse(t, b.git(nil, "rev-parse", b.base.String()+"^{tree}"))
	if s.Tree != want {
		t.Errorf("tree %s, want that of the base %s", s.Tree, want)
	}
	if len(s.Changes) != 0 || s.Dirty > len(shop()) {
		t.Errorf("changes %v, dirty %d in an untouched workspace", s.Changes, s.Dirty)
	}
	if got := b.reference(); got != want {
		t.Errorf("the workspace hashes to %s, want %s", got, want)
	}
	st, err := os.Stat(filepath.Join(b.root, "src/run.sh"))
	if err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("executable has mode %v, %v", st.Mode(), err)
	}
}

func TestCaptureTellsEveryChange(t *testing.T) {
	b := newBench(t, shop())
	b.capture()
	put(t, b.root, "README.md", "shop, changed\n")
	put(t, b.root, "src/new.go", "package main // new\n")
	put(t, b.root, "debug.log", "ignored\n")
	put(t, b.root, "build/out/x", "ignored too\n")
	put(t, b.root, "vendor/more.txt", "ignored, beside a tracked one\n")
	put(t, b.root, "vendor/kept.txt", "tracked\n")
	put(t, b.root, ".git/config", "the agent's own\n")
	for _, path := range []string{"docs", "src/main.go", "src/run.sh"} {
		if err := os.RemoveAll(filepath.Join(b.root, path)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, b.root, "src/main.go", "-> /etc/passwd")
	put(t, b.root, "src/run.sh", "#!/bin/sh\n")
	s := b.capture()
	if got := b.reference(); s.Tree != got {
		t.Errorf("tree %s, reference %s:\n%s", s.Tree, got, cmp.Diff(b.listing(got), b.listing(s.Tree)))
	}
	blob := func(mode uint32, content string) judge.Entry {
		return judge.Entry{Mode: mode, ID: objects.Hash(objects.KindBlob, []byte(content)).String(), Size: int64(len(content))}
	}
	link := blob(judge.ModeSymlink, "/etc/passwd")
	link.Target = "/etc/passwd"
	want := []judge.Change{
		{Path: "README.md", Kind: judge.Modified, Old: blob(judge.ModeFile, "shop\n"), New: blob(judge.ModeFile, "shop, changed\n")},
		{Path: "docs/a/b/c.md", Kind: judge.Deleted, Old: blob(judge.ModeFile, "deep\n")},
		{Path: "src/main.go", Kind: judge.TypeChanged, Old: blob(judge.ModeFile, "package main\n"), New: link},
		{Path: "src/new.go", Kind: judge.Added, New: blob(judge.ModeFile, "package main // new\n")},
		{Path: "src/run.sh", Kind: judge.Modified, Old: blob(judge.ModeExecutable, "#!/bin/sh\n"), New: blob(judge.ModeFile, "#!/bin/sh\n")},
		{
			Path: "vendor/kept.txt", Kind: judge.Modified,
			Old: blob(judge.ModeFile, "tracked although ignored\n"), New: blob(judge.ModeFile, "tracked\n"),
		},
	}
	if diff := cmp.Diff(want, s.Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if s.Workspace.Files != 11 {
		t.Errorf("%d files counted, want 11 with ignored ones and the agent's .git", s.Workspace.Files)
	}
	b.fsck(s.Tree)
}
