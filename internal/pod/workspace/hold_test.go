// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// freezer counts, and calls back at the moment of a freeze.
type freezer struct {
	frozen, thawed int
	onFreeze       func()
	answer         workspace.Frozen
	err, thawErr   error
}

func (f *freezer) Freeze(context.Context) (workspace.Frozen, error) {
	f.frozen++
	if f.onFreeze != nil {
		f.onFreeze()
	}
	return f.answer, f.err
}

func (f *freezer) Thaw(context.Context) error {
	f.thawed++
	return f.thawErr
}

func stops() *freezer { return &freezer{answer: workspace.Frozen{Processes: 3, Settled: true}} }

// hasFile tells whether a tree has this content at a path.
func (b *bench) hasFile(tree objects.ID, path, content string) bool {
	b.t.Helper()
	return strings.Contains(b.git(nil, "ls-tree", "-r", tree.String()), objects.Hash(objects.KindBlob, []byte(content)).String()+"\t"+path+"\n") ||
		strings.HasSuffix(b.git(nil, "ls-tree", "-r", tree.String()), objects.Hash(objects.KindBlob, []byte(content)).String()+"\t"+path)
}

func TestQuietWorkspaceIsNotFrozen(t *testing.T) {
	b := newBench(t, shop())
	put(t, b.root, "README.md", "changed\n")
	f := stops()
	s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: f})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Settled || s.Frozen || f.frozen != 0 || f.thawed != 0 {
		t.Errorf("settled %v (%s), frozen %v, freezes %d, thaws %d", s.Settled, s.Reason, s.Frozen, f.frozen, f.thawed)
	}
}

func TestWriterMakesCaptureFreeze(t *testing.T) {
	for name, watched := range map[string]bool{"watched": true, "not watched": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			if watched {
				if err := b.engine.Watch(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			put(t, b.root, "README.md", "changed\n")
			w, err := os.OpenFile(filepath.Join(b.root, "README.md"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			f := stops()
			f.onFreeze = func() {
				w.WriteString("CHANGED")
				put(t, b.root, "new/dir/file", "made at the last moment\n")
				os.Remove(filepath.Join(b.root, "src/main.go"))
			}
			s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: f})
			if err != nil {
				t.Fatal(err)
			}
			if !s.Settled || !s.Frozen || s.Processes != 3 || f.frozen != 1 || f.thawed != 1 {
				t.Errorf("settled %v (%s), frozen %v, %d processes, freezes %d, thaws %d", s.Settled, s.Reason, s.Frozen, s.Processes, f.frozen, f.thawed)
			}
			if got := b.reference(); got != s.Tree {
				t.Errorf("tree\n%s\nwant that of the moment of the freeze\n%s", b.listing(s.Tree), b.listing(got))
			}
		})
	}
}

func TestFreezeThatFailsLeavesCaptureUnsettled(t *testing.T) {
	tests := map[string]*freezer{
		"process 12 is in the kernel": {answer: workspace.Frozen{Reason: "process 12 is in the kernel"}},
		"the limit passed":            {answer: workspace.Frozen{Settled: true}, thawErr: errors.New("the limit passed")},
		"the runner does not answer":  {err: errors.New("the runner does not answer")},
	}
	for why, f := range tests {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, shop())
			put(t, b.root, "README.md", "changed\n")
			s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: f, AtOnce: true})
			if err != nil {
				t.Fatal(err)
			}
			if s.Settled || !strings.Contains(s.Reason, why) || f.thawed != 1 {
				t.Errorf("settled %v, reason %q, thaws %d", s.Settled, s.Reason, f.thawed)
			}
			if !b.hasFile(s.Tree, "README.md", "changed\n") {
				t.Error("the unsettled capture does not hold what was there")
			}
		})
	}
}

func TestKeepFrozen(t *testing.T) {
	b := newBench(t, shop())
	f := stops()
	s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: f, AtOnce: true, KeepFrozen: true})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Settled || !s.Frozen || f.thawed != 0 {
		t.Errorf("settled %v, frozen %v, thaws %d", s.Settled, s.Frozen, f.thawed)
	}
}

// TestHiddenChanges makes changes in ways that leave little or no sign, and expects the next capture to hold them.
func TestHiddenChanges(t *testing.T) {
	tests := map[string]func(t *testing.T, b *bench) (path, want string){
		"same size and mtime, same second": func(t *testing.T, b *bench) (string, string) {
			path := filepath.Join(b.root, "README.md")
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, b.root, "README.md", "SHOP\n")
			if err := os.Chtimes(path, st.ModTime(), st.ModTime()); err != nil {
				t.Fatal(err)
			}
			return "README.md", "SHOP\n"
		},
		"replaced by a file of the same size and mtime": func(t *testing.T, b *bench) (string, string) {
			path := filepath.Join(b.root, "README.md")
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, b.root, "other", "SHOP\n")
			if err := errors.Join(os.Chtimes(filepath.Join(b.root, "other"), st.ModTime(), st.ModTime()), os.Rename(filepath.Join(b.root, "other"), path)); err != nil {
				t.Fatal(err)
			}
			return "README.md", "SHOP\n"
		},
		"directory renamed over another": func(t *testing.T, b *bench) (string, string) {
			put(t, b.root, "docs2/b/c.md", "DEEP\n")
			if err := errors.Join(os.RemoveAll(filepath.Join(b.root, "docs/a")), os.Rename(filepath.Join(b.root, "docs2"), filepath.Join(b.root, "docs/a"))); err != nil {
				t.Fatal(err)
			}
			return "docs/a/b/c.md", "DEEP\n"
		},
	}
	for name, hide := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			b.capture()
			path, want := hide(t, b)
			if s := b.capture(); !b.hasFile(s.Tree, path, want) {
				t.Errorf("%s does not hold %q:\n%s", path, want, b.listing(s.Tree))
			}
		})
	}
}

func TestWriteThroughOutsideName(t *testing.T) {
	b := newBench(t, shop())
	outside := filepath.Join(filepath.Dir(b.root), "outside")
	if err := os.Link(filepath.Join(b.root, "README.md"), outside); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.capture()
	f := stops()
	w, err := os.OpenFile(filepath.Join(b.root, "src/main.go"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.WriteString("PACKAGE")
	f.onFreeze = func() {
		// No event tells of it.
		os.WriteFile(outside, []byte("SHOP\n"), 0o644)
	}
	s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: f})
	if err != nil {
		t.Fatal(err)
	}
	if f.frozen != 1 || !s.Settled || !b.hasFile(s.Tree, "README.md", "SHOP\n") {
		t.Errorf("freezes %d, settled %v (%s), tree:\n%s", f.frozen, s.Settled, s.Reason, b.listing(s.Tree))
	}
}

// tick waits until the clock that file systems take times from has just moved.
func tick(t *testing.T) {
	t.Helper()
	coarse := func() unix.Timespec {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
			t.Fatal(err)
		}
		return ts
	}
	for before := coarse(); coarse() == before; {
	}
}

// TestAChangeInTheTickOfTheFreeze: a change without an event and the freeze that follows it may bear one time.
func TestAChangeInTheTickOfTheFreeze(t *testing.T) {
	b := newBench(t, shop())
	inside, outside := filepath.Join(b.root, "README.md"), filepath.Join(filepath.Dir(b.root), "outside")
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.capture()
	// The link is not known to the engine either: the directory that it is in is not watched, and a mapping needs no
	// descriptor.
	file, err := os.OpenFile(inside, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	_ = file.Close()
	w, err := os.OpenFile(filepath.Join(b.root, "src/main.go"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.WriteString("PACKAGE")
	f := stops()
	f.onFreeze = func() {
		if f.frozen == 1 {
			tick(t)
			copy(mapped, "HIDDEN")
			if err := os.Link(inside, outside); err != nil {
				t.Error(err)
			}
		}
	}
	s := b.captureWith(workspace.Still{Freezer: f})
	if got := b.reference(); !s.Settled || got != s.Tree {
		t.Errorf("freezes %d, settled %v (%s), tree\n%s\nwant\n%s", f.frozen, s.Settled, s.Reason, b.listing(s.Tree), b.listing(got))
	}
}

// flood fills the kernel's queue of events until it runs over: what happens next, nobody is told of.
func flood(t *testing.T, b *bench) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// An event that equals the one before it is left out, hence two files.
	names := []string{filepath.Join(b.root, "src/main.go"), filepath.Join(b.root, "README.md")}
	for i := range limit + 2 {
		if err := os.Chmod(names[i%2], 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLostEventsAreFoundByScanning: a queue that ran over is noticed, before the freeze and under it.
func TestLostEventsAreFoundByScanning(t *testing.T) {
	b := newBench(t, shop())
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.capture()
	b.engine.Unread(func() {
		flood(t, b)
		put(t, b.root, "docs/guide.md", "lost before\n")
	})
	w, err := os.OpenFile(filepath.Join(b.root, "src/main.go"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f := stops()
	f.onFreeze = func() {
		if b.engine.Lost() != 1 {
			t.Errorf("lost before the freeze = %d, want 1", b.engine.Lost())
		}
		b.engine.Unread(func() {
			flood(t, b)
			put(t, b.root, "docs/new.md", "lost under the freeze\n")
		})
	}
	w.WriteString("PACKAGE")
	s := b.captureWith(workspace.Still{Freezer: f})
	if f.frozen != 1 || !b.hasFile(s.Tree, "docs/guide.md", "lost before\n") || !b.hasFile(s.Tree, "docs/new.md", "lost under the freeze\n") {
		t.Errorf("freezes %d, tree:\n%s", f.frozen, b.listing(s.Tree))
	}
	if b.engine.Lost() != 2 {
		t.Errorf("lost = %d, want 2", b.engine.Lost())
	}
}

// gate is a freezer for writers of the test's own process: each change is made under its read lock.
type gate struct{ sync.RWMutex }

func (g *gate) Freeze(context.Context) (workspace.Frozen, error) {
	g.Lock()
	return workspace.Frozen{Processes: 1, Settled: true}, nil
}

func (g *gate) Thaw(context.Context) error {
	g.Unlock()
	return nil
}

// TestChangeInProgressIsNotUnnoticed: while a file is cut short, file systems show its new size before its new ctime. A
// look after the thaw that meets this must not take it for a change from before the freeze.
func TestChangeInProgressIsNotUnnoticed(t *testing.T) {
	b := newBench(t, shop())
	const writers = 32
	for i := range writers {
		put(t, b.root, fmt.Sprintf("src/w%d", i), "first\n")
	}
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.capture()
	var g gate
	var group sync.WaitGroup
	done := make(chan struct{})
	for i := range writers {
		group.Go(func() {
			path := filepath.Join(b.root, fmt.Sprintf("src/w%d", i))
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				g.RLock()
				err := os.WriteFile(path, bytes.Repeat([]byte(strconv.Itoa(n)), 4096), 0o644)
				g.RUnlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	frozen := 0
	for range 100 {
		s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: &g})
		if err != nil {
			t.Fatal(err)
		}
		if !s.Settled {
			t.Errorf("unsettled: %s", s.Reason)
		}
		if s.Frozen {
			frozen++
		}
	}
	close(done)
	group.Wait()
	if frozen == 0 {
		t.Error("never frozen: the writers were too slow for this test to show anything")
	}
}

func TestSharedMapping(t *testing.T) {
	b := newBench(t, shop())
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.capture()
	f, err := os.OpenFile(filepath.Join(b.root, "README.md"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	f.Close()
	for _, text := range []string{"Shop\n", "sHop\n", "shOp\n"} {
		// From the second time on the page is dirty and writable: nothing but the bytes changes.
		copy(m, text)
		stop := stops()
		s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: stop})
		if err != nil {
			t.Fatal(err)
		}
		if !s.Settled || stop.frozen != 1 || !b.hasFile(s.Tree, "README.md", text) {
			t.Errorf("%q: settled %v (%s), freezes %d", text, s.Settled, s.Reason, stop.frozen)
		}
	}
}

func TestMappingIsReadAgainWithoutFreezer(t *testing.T) {
	b := newBench(t, shop())
	w, err := os.OpenFile(filepath.Join(b.root, "README.md"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.WriteString("more\n")
	s, err := b.engine.Capture(t.Context(), workspace.Still{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Settled || !strings.Contains(s.Reason, "README.md") {
		t.Errorf("settled %v, reason %q with a writer and nobody to freeze", s.Settled, s.Reason)
	}
	w.Close()
	b.capture()
}
