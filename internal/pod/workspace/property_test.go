// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// TestIncrementalEqualsFullHash plays random histories: after each of them the incremental tree, that of an engine that
// starts from nothing, and a full hash of the workspace by code of the test's own are the same, and stock git accepts the
// repository. `make test-long` plays 10,000.
func TestIncrementalEqualsFullHash(t *testing.T) {
	fewer(t, 30)
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
		agent := newVandal(rt, b.root, filepath.Join(dir, "outside"))
		defer agent.end()
		for range rapid.IntRange(1, 4).Draw(rt, "checkpoints") {
			for range rapid.IntRange(0, 8).Draw(rt, "acts") {
				agent.act()
			}
			got := b.captureWith(workspace.Still{Freezer: stops()}).Tree
			if want := b.fullHash(); got != want {
				rt.Fatalf("tree %s, full hash %s:\n%s", got, want, cmp.Diff(b.listing(b.reference()), b.listing(got)))
			}
		}
		agent.end()
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
		if again := b.fullHash(); again != last.Tree {
			rt.Fatalf("restored workspace hashes to %s, want %s", again, last.Tree)
		}
		// Stock git costs a process a file: now and then is enough to see that the test's own hash is Git's.
		if rapid.IntRange(0, 9).Draw(rt, "ask stock git") == 0 && b.reference() != last.Tree {
			rt.Fatalf("stock git hashes to another tree than %s", last.Tree)
		}
	})
}

// fewer samples of a property whose samples start many processes, unless a number is asked for.
func fewer(t *testing.T, checks int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue || os.Getenv("RAPID_CHECKS") != "" {
		return
	}
	if err := f.Value.Set(strconv.Itoa(checks)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
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
