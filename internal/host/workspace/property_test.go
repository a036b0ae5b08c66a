// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestIncrementalEqualsFullHash plays random histories: after each of them the incremental tree, that of an engine that
// starts from nothing, and that of stock git are the same.
func TestIncrementalEqualsFullHash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "history")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		files := map[string]string{".gitignore": rapid.SampledFrom([]string{"", "*.o\n", "out/\n!keep.o\n", "/a\n", "*\n!*/\n!*.go\n"}).Draw(rt, "rules")}
		for range rapid.IntRange(0, 8).Draw(rt, "base files") {
			name := path(rt)
			if conflicts(files, name) {
				continue
			}
			files[name] = content(rt)
		}
		// The trusted side is in memory, where making things durable takes no time.
		trusted, err := os.MkdirTemp("/dev/shm", "trusted")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(trusted)
		b := openBench(t.Context(), rt, dir, trusted, files)
		defer b.close()
		if rapid.Bool().Draw(rt, "watched") {
			if err := b.engine.Watch(t.Context()); err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 4).Draw(rt, "checkpoints") {
			for range rapid.IntRange(0, 8).Draw(rt, "acts") {
				act(rt, b.root)
			}
			got := b.capture().Tree
			if want := b.reference(); got != want {
				rt.Fatalf("tree %s, reference %s:\n%s", got, want, cmp.Diff(b.listing(want), b.listing(got)))
			}
		}
		last := b.capture()
		b.fsck(last.Tree)
		incremental := b.engine
		defer incremental.Close()
		b.engine = b.open()
		if again := b.capture().Tree; again != last.Tree {
			rt.Fatalf("a fresh engine finds %s, the incremental one %s", again, last.Tree)
		}
		if restored, err := b.engine.Restore(t.Context(), b.base); err != nil {
			rt.Fatalf("restore the base: %v (%+v)", err, restored)
		}
		if _, err := b.engine.Restore(t.Context(), last.Tree); err != nil {
			rt.Fatalf("restore the last tree: %v", err)
		}
		if again := b.reference(); again != last.Tree {
			rt.Fatalf("restored workspace hashes to %s, want %s", again, last.Tree)
		}
	})
}

// path draws from few names, so that histories meet.
func path(t *rapid.T) string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "out", "a.o", "keep.o", "x.go", "a-b", "é\nx", "-rf", ":(top)"}), 1, 3)
	return filepath.Join(names.Draw(t, "path")...)
}

func content(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "1\n", "2\n", "+x 1\n", "+x #!\n", "-> a", "-> /etc/passwd", "-> nowhere"}).Draw(t, "content")
}

func conflicts(files map[string]string, name string) bool {
	for other := range files {
		if rel, err := filepath.Rel(other, name); err == nil && filepath.IsLocal(rel) {
			return true
		}
		if rel, err := filepath.Rel(name, other); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// act changes the workspace somehow; what the file system refuses is no act.
func act(t *rapid.T, root string) {
	at := filepath.Join(root, path(t))
	switch rapid.SampledFrom([]string{"write", "write", "write", "append", "remove", "rename", "chmod", "link", "dir", "ignore"}).Draw(t, "act") {
	case "write":
		rel, _ := filepath.Rel(root, at)
		text := content(t)
		if rapid.Bool().Draw(t, "replace") {
			os.RemoveAll(at)
		}
		// A link is not written through: it may lead out of the workspace.
		if st, err := os.Lstat(at); err != nil || st.Mode().IsRegular() {
			_ = tryPut(root, rel, text)
		}
	case "append":
		if st, err := os.Lstat(at); err == nil && st.Mode().IsRegular() {
			f, err := os.OpenFile(at, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				f.WriteString("more\n")
				f.Close()
			}
		}
	case "remove":
		os.RemoveAll(at)
	case "rename":
		_ = os.Rename(at, filepath.Join(root, path(t)))
	case "chmod":
		if st, err := os.Lstat(at); err == nil && st.Mode().IsRegular() {
			_ = os.Chmod(at, st.Mode()^0o111)
		}
	case "link":
		_ = os.Link(at, filepath.Join(root, path(t)))
	case "dir":
		_ = os.MkdirAll(at, 0o755)
	case "ignore":
		// The agent's own rules have no say.
		_ = tryPut(root, filepath.Join(path(t), ".gitignore"), "*\n")
	}
}
