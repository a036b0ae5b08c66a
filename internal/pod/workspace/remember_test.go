// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reopen makes the engine that comes next, as a watchdog after prepare.
func (b *bench) reopen(recalls bool) {
	b.t.Helper()
	if err := b.engine.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.engine = b.open()
	recalled, err := b.engine.Recall(b.ctx)
	if err != nil || recalled != recalls {
		b.t.Fatalf("recalled %v, want %v: %v", recalled, recalls, err)
	}
}

// TestWhatWasLaidOutIsNotReadAgain: the first capture after a restore reads what has changed since, and nothing else.
func TestWhatWasLaidOutIsNotReadAgain(t *testing.T) {
	tests := map[string]struct {
		change func(t *testing.T, b *bench)
		dirty  int
	}{
		"nothing": {func(*testing.T, *bench) {}, 0},
		"written": {func(t *testing.T, b *bench) { put(t, b.root, "README.md", "SHOP\n") }, 1},
		"written, same size and mtime": {func(t *testing.T, b *bench) {
			path := filepath.Join(b.root, "README.md")
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, b.root, "README.md", "SHOP\n")
			if err := os.Chtimes(path, st.ModTime(), st.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, 1},
		"written through a mapping": {func(t *testing.T, b *bench) {
			f, err := os.OpenFile(filepath.Join(b.root, "README.md"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			m, err := unix.Mmap(int(f.Fd()), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				t.Fatal(err)
			}
			copy(m, "SHOP\n")
			if err := errors.Join(unix.Munmap(m), f.Close()); err != nil {
				t.Fatal(err)
			}
		}, 1},
		"new": {func(t *testing.T, b *bench) { put(t, b.root, "new/file", "x") }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			if err := b.engine.Remember(); err != nil {
				t.Fatal(err)
			}
			b.reopen(true)
			if err := b.engine.Watch(t.Context()); err != nil {
				t.Fatal(err)
			}
			test.change(t, b)
			s := b.capture()
			if s.Dirty != test.dirty {
				t.Errorf("%d paths were read, want %d", s.Dirty, test.dirty)
			}
			if want := b.reference(); s.Tree != want {
				t.Errorf("tree\n%s\nwant\n%s", b.listing(s.Tree), b.listing(want))
			}
			b.reopen(false)
			if s := b.capture(); s.Dirty < len(shop()) {
				t.Errorf("%d paths were read by an engine that knows nothing", s.Dirty)
			}
		})
	}
}

// TestRecallOfAnotherTree: what was laid out need not be what the engine was told of.
func TestRecallOfAnotherTree(t *testing.T) {
	b := newBench(t, shop())
	put(t, b.root, "web/more.html", "more\n")
	tree := b.capture().Tree
	if _, err := b.engine.Restore(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Remember(); err != nil {
		t.Fatal(err)
	}
	b.reopen(true)
	if s := b.capture(); s.Dirty != 0 || s.Tree != tree {
		t.Errorf("%d paths were read, tree %s, want %s", s.Dirty, s.Tree, tree)
	}
}

// TestSpoiltMemoryIsNotReliedOn: a file that was cut short or changed says nothing.
func TestSpoiltMemoryIsNotReliedOn(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"cut short": func(b []byte) []byte { return b[:len(b)-3] },
		"changed":   func(b []byte) []byte { b[len(b)-3] ^= 1; return b },
		"empty":     func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			if err := b.engine.Remember(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(b.scratch, "known")
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, spoil(content), 0o600); err != nil {
				t.Fatal(err)
			}
			b.reopen(false)
			if s := b.capture(); s.Tree != b.reference() {
				t.Error("another tree")
			}
		})
	}
}

// moveExtents exchanges blocks of two files of ext4, which changes what the second one holds and leaves its size, times and
// inode as they were. It is false where the file system cannot do it.
func moveExtents(t *testing.T, evil, victim string) bool {
	t.Helper()
	const moveExt = 0xc028660f // EXT4_IOC_MOVE_EXT
	before, err := os.ReadFile(victim)
	if err != nil {
		t.Fatal(err)
	}
	a, err := os.OpenFile(evil, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := os.OpenFile(victim, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := errors.Join(a.Sync(), b.Sync()); err != nil {
		t.Fatal(err)
	}
	arg := make([]byte, 40)
	binary.NativeEndian.PutUint32(arg[4:], uint32(b.Fd()))
	binary.NativeEndian.PutUint64(arg[24:], 1)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, a.Fd(), moveExt, uintptr(unsafe.Pointer(&arg[0])))
	// What is cached is still what it was.
	if err := errors.Join(b.Sync(), unix.Fadvise(int(b.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(victim)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("blocks moved: %v, content changed %v", errno, !bytes.Equal(before, now))
	return !bytes.Equal(before, now)
}

// TestEventIsReadWhateverTheSignatureSays: a file that somebody had open for writing is read again, and what was restored
// was hashed.
func TestEventIsReadWhateverTheSignatureSays(t *testing.T) {
	text := strings.Repeat("victim", 2000)
	b := newBench(t, map[string]string{"victim": text, "other": "x\n"})
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	evil := filepath.Join(filepath.Dir(b.root), "evil")
	victim := filepath.Join(b.root, "victim")
	move := func() bool {
		t.Helper()
		if err := os.WriteFile(evil, []byte(strings.Repeat("EVIL!!", 2000)), 0o644); err != nil {
			t.Fatal(err)
		}
		return moveExtents(t, evil, victim)
	}
	time.Sleep(20 * time.Millisecond) // what was written just now is read again in any case
	b.capture()
	b.capture()
	moved := move()
	s := b.capture()
	if s.Dirty != 1 {
		t.Errorf("%d paths were read, want the one with an event", s.Dirty)
	}
	if changed := len(s.Changes) == 1; changed != moved {
		t.Errorf("changes %v, content changed %v", s.Changes, moved)
	}
	for _, paths := range [][]string{nil, {"victim"}, nil} {
		if _, err := b.engine.Restore(t.Context(), b.base, paths...); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(victim); err != nil || string(got) != text {
			t.Fatalf("restored to %q... (%v)", got[:min(len(got), 6)], err)
		}
		time.Sleep(20 * time.Millisecond)
		b.capture()
		// Nobody hears the events of this one.
		if err := b.engine.Close(); err != nil {
			t.Fatal(err)
		}
		b.engine = b.open()
		b.capture()
		move()
	}
}
