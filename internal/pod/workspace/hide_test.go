// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// longEnv asks for the long form of what `make test` does a little of: see `make test-long`.
const longEnv = "TIDEWAITER_LONG"

// hider changes one file of 64 bytes in a way that shall not be noticed. All of it happens in the second in which the file
// was made, and leaves size and mtime as they were.
type hider struct {
	b       *bench
	path    string
	outside string
	open    *os.File
	mapped  []byte
	mtime   time.Time
	random  *rand.Rand
}

// prepare is what the agent does before the checkpoint: it makes the file, dates it back, and keeps what it needs later.
func (h *hider) prepare(way string) error {
	err := errors.Join(os.RemoveAll(h.path), os.RemoveAll(h.outside), os.WriteFile(h.path, h.text(), 0o644))
	if err != nil {
		return err
	}
	if way == "descriptor" || way == "mapping" {
		if h.open, err = os.OpenFile(h.path, os.O_RDWR, 0); err != nil {
			return err
		}
	}
	if way == "mapping" {
		// The page is dirty and writable from now on: no write to it leaves a trace any more.
		if h.mapped, err = unix.Mmap(int(h.open.Fd()), 0, 64, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return err
		}
		copy(h.mapped, h.text())
	}
	if way == "outside name" {
		err = os.Link(h.path, h.outside)
	}
	return errors.Join(err, os.Chtimes(h.path, h.mtime, h.mtime))
}

func (h *hider) text() []byte { return fmt.Appendf(nil, "%064x", h.random.Uint64()) }

// hide changes the file.
func (h *hider) hide(way string) error {
	var err error
	switch way {
	case "in place":
		err = h.overwrite(h.path)
	case "outside name":
		err = h.overwrite(h.outside)
	case "replaced":
		other := h.outside + ".new"
		err = errors.Join(os.WriteFile(other, h.text(), 0o644), os.Chtimes(other, h.mtime, h.mtime), os.Rename(other, h.path))
	case "directory replaced":
		dir := filepath.Dir(h.path)
		other := filepath.Join(dir+".new", filepath.Base(h.path))
		err = errors.Join(os.Mkdir(dir+".new", 0o755), os.WriteFile(other, h.text(), 0o644), os.Chtimes(other, h.mtime, h.mtime),
			os.RemoveAll(dir), os.Rename(dir+".new", dir))
	case "hole":
		var f *os.File
		if f, err = os.OpenFile(h.path, os.O_RDWR, 0); err == nil {
			_, err = f.WriteAt(h.text()[:32], 32)
			err = errors.Join(err, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 16), f.Close())
		}
	case "descriptor":
		_, err = h.open.WriteAt(h.text(), 0)
	case "mapping":
		copy(h.mapped, h.text())
		return nil // to touch the times would give it away
	case "mapping of a moment":
		err = h.mapOver()
	}
	return errors.Join(err, os.Chtimes(h.path, h.mtime, h.mtime))
}

func (h *hider) overwrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(h.text())
	return errors.Join(err, f.Close())
}

func (h *hider) mapOver() error {
	f, err := os.OpenFile(h.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 64, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		// A page that was read first is writable already where the volume does not mind who writes (memory-backed ones).
		m[0] ^= m[63]
		copy(m[1:], h.text())
		err = unix.Munmap(m)
	}
	return errors.Join(err, f.Close())
}

func (h *hider) end() error {
	var err error
	if h.mapped != nil {
		err = unix.Munmap(h.mapped)
	}
	if h.open != nil {
		err = errors.Join(err, h.open.Close())
	}
	h.open, h.mapped = nil, nil
	return err
}

// TestNoHiddenChangeIsMissed hides changes at random, and finds every one of them, while `git add -A` misses some: else
// they were not hidden. `make test-long` hides 1,000.
func TestNoHiddenChangeIsMissed(t *testing.T) {
	attempts := 64
	if os.Getenv(longEnv) != "" {
		attempts = 1000
	}
	files := make(map[string]string)
	for i := range 20 {
		files[fmt.Sprintf("src/p%d/main.go", i)] = fmt.Sprintf("package p%d\n", i)
	}
	b := newBench(t, files)
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ways := []string{"in place", "outside name", "replaced", "directory replaced", "hole", "descriptor", "mapping", "mapping of a moment"}
	stock := make(map[string]int)
	for attempt := range attempts {
		way := ways[attempt%len(ways)]
		rel := fmt.Sprintf("src/p%d/hidden", random.IntN(20))
		h := &hider{
			b: b, path: filepath.Join(b.root, rel), outside: filepath.Join(filepath.Dir(b.root), "outside"), random: random,
			mtime: time.Date(2001, 1, 1, 0, 0, random.IntN(60), 0, time.UTC),
		}
		if err := h.prepare(way); err != nil {
			t.Fatal(way, err)
		}
		before := b.captureWith(workspace.Still{Freezer: stops()})
		b.git(nil, "--work-tree="+b.root, "add", "-A", "-f")
		if err := h.hide(way); err != nil {
			t.Fatal(way, err)
		}
		want, err := os.ReadFile(h.path)
		if err != nil {
			t.Fatal(err)
		}
		after := b.captureWith(workspace.Still{Freezer: stops()})
		if !b.hasFile(after.Tree, rel, string(want)) {
			t.Errorf("attempt %d, %s: missed (frozen %v, then %v)", attempt, way, before.Frozen, after.Frozen)
		}
		b.git(nil, "--work-tree="+b.root, "add", "-A", "-f")
		if hash := hashObject("blob", want).String(); !strings.Contains(b.git(nil, "ls-files", "-s", rel), hash) {
			stock[way]++
		}
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d attempts; git add -A missed %v", attempts, stock)
	if len(stock) == 0 {
		t.Error("git add -A missed nothing: the changes were not hidden")
	}
}

// TestMemoryVolumeIsHashedWhole: on a memory-backed volume a write through a mapping changes no time at all, so that no
// signature can be believed there. The engine finds that out and reads everything.
func TestMemoryVolumeIsHashedWhole(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "volume")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b := openBench(t.Context(), t, dir, t.TempDir(), shop())
	defer b.close()
	if a := b.engine.Assumptions(); a.MappedWrites || len(a.Notes) == 0 {
		t.Fatalf("assumptions %+v: this kernel's memory files tell of mapped writes", a)
	}
	h := &hider{path: filepath.Join(b.root, "README.md"), random: rand.New(rand.NewPCG(1, 2))}
	if err := os.WriteFile(h.path, h.text(), 0o644); err != nil {
		t.Fatal(err)
	}
	b.capture()
	before, err := os.Stat(h.path)
	if err == nil {
		err = h.mapOver()
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(h.path)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(h.path)
	if err != nil {
		t.Fatal(err)
	}
	if b, a := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t); a.Ctim != b.Ctim || a.Mtim != b.Mtim {
		t.Error("the write shows: this test shows nothing")
	}
	if s := b.capture(); !b.hasFile(s.Tree, "README.md", string(want)) {
		t.Error("a mapped write was missed")
	}
}
