// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

func newStore(t *testing.T) (*objects.Store, string) {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, nil, "init", "-q", "--bare", ".")
	return objects.NewStore(filepath.Join(dir, "objects")), dir
}

func git(t *testing.T, dir string, stdin []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR="+dir)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestPackIsReadByGit(t *testing.T) {
	store, dir := newStore(t)
	noise := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	pack := store.NewPack(nil)
	contents := [][]byte{nil, []byte("x"), bytes.Repeat([]byte("long "), 1000), noise[:1<<20], noise[:1<<20+1], noise}
	want := make(map[objects.ID][]byte)
	for range 2 {
		for _, content := range contents {
			id, err := pack.AddBlob(bytes.NewReader(content), int64(len(content)))
			if err != nil {
				t.Fatal(err)
			}
			want[id] = content
		}
	}
	if pack.Len() != len(contents) {
		t.Errorf("%d objects, want %d: each once", pack.Len(), len(contents))
	}
	if err := pack.Commit(); err != nil {
		t.Fatal(err)
	}
	git(t, dir, nil, "fsck", "--full", "--strict")
	packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*"))
	if len(packs) != 2 {
		t.Errorf("files %v, want one pack and its index", packs)
	}
	git(t, dir, nil, "verify-pack", packs[0])
	for id, content := range want {
		if got := git(t, dir, nil, "cat-file", "-s", id.String()); got != strconv.Itoa(len(content)) {
			t.Errorf("%s has %s bytes, want %d", id, got, len(content))
		}
		if objects.Hash(objects.KindBlob, content) != id {
			t.Errorf("%s is not the name of its content", id)
		}
	}
}

func TestPackForgetsWhatFails(t *testing.T) {
	store, dir := newStore(t)
	large := bytes.Repeat([]byte("0123456789"), 200_000)
	pack := store.NewPack(func(id objects.ID) bool { return id == objects.Hash(objects.KindBlob, []byte("known")) })
	tests := map[string]struct {
		content io.Reader
		size    int64
		want    error
	}{
		"small, cut short": {bytes.NewReader([]byte("ab")), 3, objects.ErrShort},
		"small, grown":     {bytes.NewReader([]byte("abcd")), 3, objects.ErrShort},
		"large, cut short": {bytes.NewReader(large), int64(len(large)) + 1, objects.ErrShort},
		"large, grown":     {bytes.NewReader(large), int64(len(large)) - 1, objects.ErrShort},
		"unreadable":       {io.MultiReader(bytes.NewReader(large), broken{}), int64(len(large)) + 9, errBroken},
		"known already":    {bytes.NewReader([]byte("known")), 5, nil},
	}
	for name, test := range tests {
		if _, err := pack.AddBlob(test.content, test.size); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	id, err := pack.Add(objects.KindBlob, []byte("the only one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pack.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := git(t, dir, nil, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"); got != id.String() {
		t.Errorf("objects %q, want only %s", got, id)
	}
	empty := store.NewPack(nil)
	if err := empty.Commit(); err != nil {
		t.Fatal(err)
	}
	aborted := store.NewPack(nil)
	if _, err := aborted.AddBlob(bytes.NewReader(large), int64(len(large))); err != nil {
		t.Fatal(err)
	}
	aborted.Abort()
	if files, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*")); len(files) != 2 {
		t.Errorf("files %v, want those of one pack", files)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestCommit(t *testing.T) {
	store, dir := newStore(t)
	tree, err := store.Write(objects.KindTree, nil)
	if err != nil {
		t.Fatal(err)
	}
	when := time.Unix(1_700_000_000, 0).In(time.FixedZone("", -5400))
	want := objects.Commit{
		Tree:      tree,
		Author:    objects.Person{Name: "Ann Tide", Email: "ann@example.com", When: when},
		Committer: objects.Person{Name: "Tidewaiter", Email: "tw@example.com", When: when},
		Message:   "Subject\n\nBody\n",
	}
	content, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	id, err := store.Write(objects.KindCommit, content)
	if err != nil {
		t.Fatal(err)
	}
	git(t, dir, nil, "fsck", "--full", "--strict")
	if got := git(t, dir, nil, "log", "-1", "--format=%an|%ae|%ad|%cn|%B", "--date=raw", id.String()); got != "Ann Tide|ann@example.com|1700000000 -0130|Tidewaiter|Subject\n\nBody" {
		t.Errorf("git reads %q", got)
	}
	got, err := objects.ParseCommit(content)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
	want.Author.Name = "Evil <x>\nparent 0000"
	if content, err = want.Encode(); err != nil || bytes.Contains(content, []byte("\nparent")) {
		t.Errorf("a name made a header: %v\n%s", err, content)
	}
	for name, bad := range map[string]objects.Commit{"no tree": {}, "NUL": {Tree: tree, Message: "a\x00b"}} {
		if _, err := bad.Encode(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestApplyEqualsMaking compares edits of a tree with making the tree anew, and Diff with comparing the lists.
func TestApplyEqualsMaking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := make(map[string]objects.ID)
		tree := &objects.Tree{ID: objects.EmptyTree}
		emitted := map[objects.ID]bool{objects.EmptyTree: true}
		emit := func(id objects.ID, content []byte) error {
			if objects.Hash(objects.KindTree, content) != id {
				t.Fatalf("%s is not the name of its content", id)
			}
			emitted[id] = true
			return nil
		}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			before, beforeFiles := tree, clone(files)
			var edits []objects.Edit
			for range rapid.IntRange(0, 6).Draw(t, "edits") {
				edits = append(edits, edit(t, files)...)
			}
			var err error
			if tree, err = tree.Apply(edits, emit); err != nil {
				t.Fatal(err)
			}
			if got := flat(tree); !cmp.Equal(got, files) {
				t.Fatalf("tree %v, want %v", got, files)
			}
			checkOrder(t, tree, emitted)
			checkDiff(t, before, tree, beforeFiles, files)
		}
	})
}

// edit changes files as a workspace would: what stands in the way of a path is removed first.
func edit(t *rapid.T, files map[string]objects.ID) []objects.Edit {
	path := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a-b", "a.c", "b", "a0"}), 1, 3).Draw(t, "path"), "/")
	var edits []objects.Edit
	drop := func(p string) {
		if _, found := files[p]; found {
			delete(files, p)
			edits = append(edits, objects.Edit{Path: p})
		}
	}
	for p := range clone(files) {
		if p == path || strings.HasPrefix(p, path+"/") || strings.HasPrefix(path, p+"/") {
			drop(p)
		}
	}
	if rapid.Bool().Draw(t, "set") {
		id := objects.Hash(objects.KindBlob, []byte{byte(rapid.IntRange(0, 3).Draw(t, "content"))})
		files[path] = id
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: objects.ModeFile, ID: id, Size: 1}})
	}
	return edits
}

func clone(files map[string]objects.ID) map[string]objects.ID {
	return maps.Clone(files)
}

func flat(tree *objects.Tree) map[string]objects.ID {
	files := make(map[string]objects.ID)
	tree.Walk(func(path string, e *objects.Entry) bool {
		files[path] = e.ID
		return true
	})
	return files
}

// checkOrder makes sure that every tree is sorted as Git sorts, found by name, and was emitted.
func checkOrder(t *rapid.T, tree *objects.Tree, emitted map[objects.ID]bool) {
	if !emitted[tree.ID] {
		t.Fatalf("tree %s was not emitted", tree.ID)
	}
	var keys []string
	for i := range tree.Entries {
		e := &tree.Entries[i]
		key := e.Name
		if e.Mode == objects.ModeTree {
			key += "/"
			checkOrder(t, e.Tree, emitted)
		}
		keys = append(keys, key)
		if tree.Child(e.Name) != e {
			t.Fatalf("%q is not found by name", e.Name)
		}
	}
	if !slices.IsSorted(keys) {
		t.Fatalf("order %q", keys)
	}
}

func checkDiff(t *rapid.T, a, b *objects.Tree, before, after map[string]objects.ID) {
	got := make(map[string][2]objects.ID)
	objects.Diff(a, b, func(path string, x, y *objects.Entry) {
		d := got[path]
		if x != nil {
			d[0] = x.ID
		}
		if y != nil {
			d[1] = y.ID
		}
		got[path] = d
	})
	want := make(map[string][2]objects.ID)
	for path, id := range before {
		if after[path] != id {
			want[path] = [2]objects.ID{id, after[path]}
		}
	}
	for path, id := range after {
		if before[path] != id {
			want[path] = [2]objects.ID{before[path], id}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("diff (-want +got):\n%s", diff)
	}
}

func FuzzParseTree(f *testing.F) {
	_, content := objects.NewTree([]objects.Entry{{Name: "a", Mode: objects.ModeFile}, {Name: "b", Mode: objects.ModeTree}})
	f.Add(content)
	f.Add([]byte("100644 a\x00short"))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := objects.ParseTree(content)
		if err == nil && len(content) > 0 && len(entries) == 0 {
			t.Error("content without entries")
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree " + objects.EmptyTree.String() + "\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\n\nm\n"))
	f.Add([]byte("tree x"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := objects.ParseCommit(content)
		if err == nil && c.Tree.IsZero() {
			t.Error("a commit without a tree")
		}
	})
}

// TestOddModes has a tree with modes that Git does not write any more: it stays the object that it is until it changes.
func TestOddModes(t *testing.T) {
	file := objects.Hash(objects.KindBlob, []byte("x\n"))
	var content []byte
	for _, e := range []string{"100664 a", "100600 b", "100775 c", "040000 d", "40755 e", "120777 f", "020000 g"} {
		content = append(append(append(content, e...), 0), file[:]...)
	}
	entries, err := objects.ParseTree(content)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{
		objects.ModeFile, objects.ModeFile, objects.ModeExecutable, objects.ModeTree, objects.ModeTree, objects.ModeSymlink, objects.ModeGitlink,
	} {
		if entries[i].Mode != want {
			t.Errorf("%s has the mode %o, want %o", entries[i].Name, entries[i].Mode, want)
		}
	}
	odd := &objects.Tree{ID: objects.Hash(objects.KindTree, content), Entries: entries}
	made := 0
	emit := func(objects.ID, []byte) error { made++; return nil }
	same := entries[0]
	if got, err := odd.Apply([]objects.Edit{{Path: "a", Entry: &same}}, emit); err != nil || got != odd || made != 0 {
		t.Errorf("an edit that changes nothing: %v, %d trees made, %v", got.ID, made, err)
	}
	other := objects.Entry{Mode: objects.ModeFile, ID: objects.Hash(objects.KindBlob, nil)}
	got, err := odd.Apply([]objects.Edit{{Path: "a", Entry: &other}}, emit)
	if err != nil || made != 1 {
		t.Fatalf("%d trees made, %v", made, err)
	}
	objects.Diff(odd, got, func(path string, _, _ *objects.Entry) {
		if path != "a" {
			t.Errorf("%s differs", path)
		}
	})
}
