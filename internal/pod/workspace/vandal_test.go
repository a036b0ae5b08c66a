// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// vandal changes a workspace in every way that an agent could, drawn at random. What the file system refuses is no act.
type vandal struct {
	t       *rapid.T
	root    string
	outside string
	open    []*os.File
	mapped  []mapping
	links   int
}

func newVandal(t *rapid.T, root, outside string) *vandal {
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	return &vandal{t: t, root: root, outside: outside}
}

// end closes what is still open.
func (v *vandal) end() {
	for _, m := range v.mapped {
		_ = unix.Munmap(m.page)
		_ = m.file.Close()
	}
	for _, f := range v.open {
		_ = f.Close()
	}
	v.open, v.mapped = nil, nil
}

func (v *vandal) act() {
	at := filepath.Join(v.root, path(v.t))
	st, err := os.Lstat(at)
	regular := err == nil && st.Mode().IsRegular()
	acts := []string{"write", "write", "write", "remove", "rename", "dir", "ignore", "large", "outside"}
	if regular {
		acts = append(acts, "append", "chmod", "lock", "link", "sparse", "hide", "hold", "map")
	}
	acts = append(acts, "through descriptor", "through mapping")
	switch rapid.SampledFrom(acts).Draw(v.t, "act") {
	case "write":
		v.write(at)
	case "append":
		v.into(at, os.O_APPEND, func(f *os.File) { _, _ = f.WriteString("more\n") })
	case "remove":
		os.RemoveAll(at)
	case "rename":
		_ = os.Rename(at, filepath.Join(v.root, path(v.t)))
	case "chmod":
		_ = os.Chmod(at, st.Mode()^0o111)
	case "lock":
		// For root this is a change like any other; TestUnreadableLeavesCaptureUnsettled is for the others.
		_ = os.Chmod(at, 0)
	case "link":
		_ = os.Link(at, filepath.Join(v.root, path(v.t)))
	case "outside":
		v.linkOutside(at)
	case "dir":
		_ = os.MkdirAll(at, 0o755)
	case "ignore":
		// The agent's own rules have no say.
		_ = tryPut(v.root, filepath.Join(path(v.t), ".gitignore"), "*\n")
	case "large":
		v.into(at, os.O_CREATE, func(f *os.File) { _ = f.Truncate(readLimit + 1) })
	case "sparse":
		v.into(at, 0, func(f *os.File) { _ = f.Truncate(100_000) })
	case "hide":
		v.hide(at, st)
	case "hold":
		if f, err := os.OpenFile(at, os.O_RDWR, 0); err == nil {
			v.open = append(v.open, f)
		}
	case "map":
		v.mapFile(at)
	case "through descriptor":
		for _, f := range v.open {
			_, _ = f.WriteAt([]byte(rapid.StringMatching("[a-z]").Draw(v.t, "letter")), 0)
		}
	case "through mapping":
		for _, m := range v.mapped {
			m.touch(byte(rapid.IntRange('a', 'z').Draw(v.t, "byte")))
		}
	}
}

func (v *vandal) write(at string) {
	rel, _ := filepath.Rel(v.root, at)
	text := content(v.t)
	if rapid.Bool().Draw(v.t, "replace") {
		os.RemoveAll(at)
	}
	// A link is not written through: it may lead out of the workspace.
	if st, err := os.Lstat(at); err != nil || st.Mode().IsRegular() {
		_ = tryPut(v.root, rel, text)
	}
}

func (v *vandal) into(at string, flags int, change func(*os.File)) {
	if f, err := os.OpenFile(at, os.O_WRONLY|unix.O_NOFOLLOW|flags, 0o644); err == nil {
		change(f)
		f.Close()
	}
}

// hide changes a file but for its size and mtime.
func (v *vandal) hide(at string, st fs.FileInfo) {
	v.into(at, 0, func(f *os.File) { _, _ = f.WriteString(strings.Repeat("#", min(3, int(st.Size())))) })
	_ = os.Chtimes(at, time.Time{}, st.ModTime())
}

// linkOutside gives a file a name where nobody watches, or writes through those that there are.
func (v *vandal) linkOutside(at string) {
	if rapid.Bool().Draw(v.t, "new name") {
		_ = os.Link(at, filepath.Join(v.outside, fmt.Sprint(v.links)))
		v.links++
		return
	}
	for n := range v.links {
		v.into(filepath.Join(v.outside, fmt.Sprint(n)), os.O_TRUNC, func(f *os.File) { _, _ = f.WriteString(content(v.t)) })
	}
}

// mapping is the first page of a file, in this process's memory.
type mapping struct {
	file *os.File
	page []byte
}

// touch changes the first byte. A file that was emptied since has no page: to touch that would be fatal.
func (m mapping) touch(b byte) {
	if st, err := m.file.Stat(); err == nil && st.Size() > 0 {
		m.page[0] = b
	}
}

func (v *vandal) mapFile(at string) {
	f, err := os.OpenFile(at, os.O_RDWR, 0)
	if err != nil {
		return
	}
	page, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		f.Close()
		return
	}
	m := mapping{f, page}
	m.touch('?')
	v.mapped = append(v.mapped, m)
}

// fullHash names the tree of the workspace, by code that has nothing in common with the engine.
func (b *bench) fullHash() objects.ID {
	b.t.Helper()
	id, ok := b.hashDir(b.root, b.ignored())
	if !ok {
		return sha1.Sum([]byte("tree 0\x00"))
	}
	return id
}

// hashDir is false for a directory without anything that Git would hold.
func (b *bench) hashDir(dir string, ignored map[string]bool) (objects.ID, bool) {
	b.t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	type line struct{ key, text string }
	var lines []line
	for _, e := range list {
		at := filepath.Join(dir, e.Name())
		rel, _ := filepath.Rel(b.root, at)
		if e.Name() == ".git" || ignored[rel] {
			continue
		}
		mode, id, ok := b.hashEntry(at, e, ignored)
		if !ok {
			continue
		}
		key := e.Name()
		if e.IsDir() {
			key += "/"
		}
		lines = append(lines, line{key, mode + " " + e.Name() + "\x00" + string(id[:])})
	}
	slices.SortFunc(lines, func(x, y line) int { return strings.Compare(x.key, y.key) })
	var tree bytes.Buffer
	for _, l := range lines {
		tree.WriteString(l.text)
	}
	return hashObject("tree", tree.Bytes()), len(lines) > 0
}

func (b *bench) hashEntry(at string, e fs.DirEntry, ignored map[string]bool) (mode string, id objects.ID, ok bool) {
	b.t.Helper()
	if e.IsDir() {
		id, ok = b.hashDir(at, ignored)
		return "40000", id, ok
	}
	st, err := e.Info()
	if err != nil {
		b.t.Fatal(err)
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(at)
		if err != nil {
			b.t.Fatal(err)
		}
		return "120000", hashObject("blob", []byte(target)), true
	}
	if !st.Mode().IsRegular() || st.Size() > readLimit {
		return "", objects.ID{}, false
	}
	text, err := os.ReadFile(at)
	if err != nil {
		b.t.Fatal(err)
	}
	mode = "100644"
	if st.Mode()&0o100 != 0 {
		mode = "100755"
	}
	return mode, hashObject("blob", text), true
}

func hashObject(kind string, content []byte) objects.ID {
	return sha1.Sum(append([]byte(fmt.Sprintf("%s %d\x00", kind, len(content))), content...))
}
