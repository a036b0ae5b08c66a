// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// limited captures within limits.
func (b *bench) limited(l workspace.Limits) workspace.Snapshot {
	b.t.Helper()
	return b.captureWith(workspace.Still{Limits: l})
}

// TestLargeFileIsNotStored: a file over the policy's size is found with its size, and its content is nowhere.
func TestLargeFileIsNotStored(t *testing.T) {
	for name, watched := range map[string]bool{"watched": true, "not watched": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			if watched {
				if err := b.engine.Watch(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.capture()
			const marker = "CONTENT-THAT-IS-NOT-STORED"
			put(t, b.root, "large.txt", strings.Repeat(marker+"\n", 100))
			limits := workspace.Limits{MaxFileSize: 1000}
			s := b.limited(limits)
			if len(s.Found) != 1 || s.Found[0] != (judge.Found{Path: "large.txt", Kind: judge.FoundTooLarge, Size: int64(27 * 100)}) || len(s.Changes) != 0 {
				t.Errorf("found %v, changes %v", s.Found, s.Changes)
			}
			if all := b.git(nil, "cat-file", "--batch-all-objects", "--batch"); strings.Contains(all, marker) {
				t.Error("the content is in the trusted repository")
			}
			// A policy that allows more lets it in.
			if s = b.limited(workspace.Limits{MaxFileSize: 10_000}); len(s.Found) != 0 || len(s.Changes) != 1 {
				t.Errorf("allowed: found %v, changes %v", s.Found, s.Changes)
			}
		})
	}
}

// TestTooMuchIsNotRead: where there is more than the policy allows, the capture counts it and reads none of it.
func TestTooMuchIsNotRead(t *testing.T) {
	tests := map[string]workspace.Limits{
		"files": {MaxFiles: 20},
		"bytes": {MaxBytes: 2000},
	}
	for name, limits := range tests {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, watched %v", name, watched), func(t *testing.T) {
				b := newBench(t, shop())
				if watched {
					if err := b.engine.Watch(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				before := b.capture()
				for i := range 200 {
					put(t, b.root, fmt.Sprintf("many/%d", i), strings.Repeat("x", 100)+fmt.Sprint(i))
				}
				s := b.limited(limits)
				if !s.Incomplete || s.Workspace.Files < 200 || s.Workspace.Bytes < 20_000 {
					t.Errorf("incomplete %v, workspace %+v", s.Incomplete, s.Workspace)
				}
				if !watched && (s.Tree != before.Tree || s.Dirty != 0) {
					t.Errorf("%d paths were read, changes %v", s.Dirty, s.Changes)
				}
				if s.Dirty > 150 {
					t.Errorf("%d paths were read", s.Dirty)
				}
				if err := os.RemoveAll(filepath.Join(b.root, "many")); err != nil {
					t.Fatal(err)
				}
				if s := b.limited(limits); s.Incomplete || s.Tree != before.Tree {
					t.Errorf("within the limits again: incomplete %v, changes %v", s.Incomplete, s.Changes)
				}
			})
		}
	}
}

// TestSparseFilesCostWhatTheyHold: a file of 1 TiB that holds nothing is neither read nor counted as if it held something.
func TestSparseFilesCostWhatTheyHold(t *testing.T) {
	b := newBench(t, shop())
	before := b.capture()
	sparse(t, filepath.Join(b.root, "big"), 1<<40)
	put(t, b.root, "build/x", "ignored\n")
	sparse(t, filepath.Join(b.root, "build/disk.img"), 1<<40)
	s := b.limited(workspace.Limits{MaxFileSize: 50 << 20, MaxBytes: 1 << 30, MaxFiles: 1000})
	if s.Incomplete || len(s.Found) != 1 || s.Found[0].Size != 1<<40 || s.Dirty != 0 {
		t.Errorf("incomplete %v, found %v, %d read", s.Incomplete, s.Found, s.Dirty)
	}
	if s.Workspace.Bytes > before.Workspace.Bytes+100 || s.Workspace.Files != before.Workspace.Files+3 {
		t.Errorf("workspace %+v, before %+v", s.Workspace, before.Workspace)
	}
}

// TestIgnoredFilesAreCountedToTheLimit: a directory of any size that is ignored does not escape the count.
func TestIgnoredFilesAreCountedToTheLimit(t *testing.T) {
	b := newBench(t, shop())
	for i := range 300 {
		put(t, b.root, fmt.Sprintf("build/%d", i), "x")
	}
	s := b.limited(workspace.Limits{MaxFiles: 100})
	if s.Workspace.Files <= 100 || !s.Workspace.Uncounted || s.Incomplete {
		t.Errorf("workspace %+v, incomplete %v: what can be captured is within the limit", s.Workspace, s.Incomplete)
	}
}

// TestLongPathsAreBounded: the paths of a workspace are held in memory, and an agent decides how long they are.
func TestLongPathsAreBounded(t *testing.T) {
	b := newBench(t, shop())
	few, err := workspace.Open(t.Context(), workspace.Options{Root: b.root, Repository: b.repo, Scratch: t.TempDir(), MaxEntries: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer few.Close()
	if err := few.Reset(t.Context(), b.base, b.base); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		put(t, b.root, fmt.Sprintf("%sf%d", strings.Repeat(strings.Repeat("d", 249)+"/", 6), i), "x")
	}
	for range 2 {
		s, err := few.Capture(t.Context(), workspace.Still{})
		if err != nil || !s.Incomplete || !s.Workspace.Uncounted || s.Dirty > 0 {
			t.Fatalf("capture: %v, incomplete %v, workspace %+v, %d paths were read", err, s.Incomplete, s.Workspace, s.Dirty)
		}
	}
	if err := os.RemoveAll(filepath.Join(b.root, strings.Repeat("d", 249))); err != nil {
		t.Fatal(err)
	}
	if s, err := few.Capture(t.Context(), workspace.Still{}); err != nil || s.Incomplete || len(s.Changes) != 0 {
		t.Errorf("without them: %v, incomplete %v, changes %v", err, s.Incomplete, s.Changes)
	}
}

// TestRestoreAboveTheLimitOfEntries: a restore removes what is too much for a scan.
func TestRestoreAboveTheLimitOfEntries(t *testing.T) {
	for name, path := range map[string]string{
		"new files": "docs/many/n%d/f%d", "beside files of the tree": "docs/%d-%d", "ignored files": "docs/%d-%d.log", "at the root": "%d-%d",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			put(t, b.root, "build/out", "ignored\n")
			few, err := workspace.Open(t.Context(), workspace.Options{Root: b.root, Repository: b.repo, Scratch: t.TempDir(), MaxEntries: 60})
			if err != nil {
				t.Fatal(err)
			}
			defer few.Close()
			if err := few.Reset(t.Context(), b.base, b.base); err != nil {
				t.Fatal(err)
			}
			for i := range 500 {
				put(t, b.root, fmt.Sprintf(path, i%3, i), "x")
			}
			put(t, b.root, "src/main.go", "changed\n")
			f := stops()
			s, err := few.Capture(t.Context(), workspace.Still{Freezer: f, AtOnce: true})
			if err != nil || !s.Incomplete || !s.Workspace.Uncounted {
				t.Fatalf("capture: %v, incomplete %v, workspace %+v", err, s.Incomplete, s.Workspace)
			}
			if _, err := few.Restore(t.Context(), b.base, "src"); err == nil {
				t.Error("a restore of some paths claims to know the rest")
			}
			r, err := few.Restore(t.Context(), b.base)
			if err != nil {
				t.Fatal(err)
			}
			if s, err = few.Capture(t.Context(), workspace.Still{}); err != nil || !s.Settled || len(s.Changes) != 0 {
				t.Errorf("after the restore: %v, settled %v, changes %v", err, s.Settled, s.Changes)
			}
			_, err = os.Lstat(filepath.Join(b.root, "build/out"))
			if kept := err == nil; kept != (name != "ignored files") || (r.Cleared > 0) == kept {
				t.Errorf("ignored files kept: %v, cleared %d", kept, r.Cleared)
			}
		})
	}
}

// TestScanThatEndsAfterTheFreeze: what the agent makes after a thaw may be more than a scan visits.
func TestScanThatEndsAfterTheFreeze(t *testing.T) {
	b := newBench(t, shop())
	few, err := workspace.Open(t.Context(), workspace.Options{Root: b.root, Repository: b.repo, Scratch: t.TempDir(), MaxEntries: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer few.Close()
	if err := errors.Join(few.Reset(t.Context(), b.base, b.base), few.Watch(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := few.Capture(t.Context(), workspace.Still{}); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(filepath.Join(b.root, "README.md"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.WriteString("more\n")
	f := &flooding{b: b}
	s, err := few.Capture(t.Context(), workspace.Still{Freezer: f})
	if err != nil || s.Settled && !s.Incomplete {
		t.Errorf("%v, settled %v, incomplete %v", err, s.Settled, s.Incomplete)
	}
}

// flooding is an agent that makes many files when it is thawed.
type flooding struct{ b *bench }

func (f *flooding) Freeze(ctx context.Context) (workspace.Frozen, error) {
	return workspace.Frozen{Settled: true}, nil
}

func (f *flooding) Thaw(context.Context) error {
	for i := range 200 {
		put(f.b.t, f.b.root, fmt.Sprintf("flood/%d", i), "x")
	}
	put(f.b.t, f.b.root, "src/main.go", "changed after the thaw\n")
	return nil
}

// TestNewDirectoryWithTooMuch: an event leads to more than may be looked at, before any scan has counted it.
func TestNewDirectoryWithTooMuch(t *testing.T) {
	b := newBench(t, shop())
	few, err := workspace.Open(t.Context(), workspace.Options{Root: b.root, Repository: b.repo, Scratch: t.TempDir(), MaxEntries: 60})
	if err != nil {
		t.Fatal(err)
	}
	defer few.Close()
	if err := errors.Join(few.Reset(t.Context(), b.base, b.base), few.Watch(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := few.Capture(t.Context(), workspace.Still{}); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		put(t, b.root, fmt.Sprintf("../new/d%d/%d", i%5, i), "x")
	}
	if err := os.Rename(filepath.Join(filepath.Dir(b.root), "new"), filepath.Join(b.root, "new")); err != nil {
		t.Fatal(err)
	}
	for _, f := range []workspace.Freezer{nil, stops()} {
		s, err := few.Capture(t.Context(), workspace.Still{Freezer: f})
		if err != nil || !s.Settled || !s.Incomplete || !s.Workspace.Uncounted {
			t.Errorf("%v, settled %v (%s), incomplete %v, workspace %+v", err, s.Settled, s.Reason, s.Incomplete, s.Workspace)
		}
	}
	if err := os.RemoveAll(filepath.Join(b.root, "new")); err != nil {
		t.Fatal(err)
	}
	if s, err := few.Capture(t.Context(), workspace.Still{}); err != nil || !s.Settled || s.Incomplete || len(s.Changes) != 0 {
		t.Errorf("gone again: %v, incomplete %v, changes %v", err, s.Incomplete, s.Changes)
	}
}
