// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitspy"
)

// plant stores a tree as it is, sound or not.
func plant(t *testing.T, r *git.Repository, entries ...objects.Entry) objects.ID {
	t.Helper()
	_, content := objects.NewTree(entries)
	id, err := r.Store().Write(objects.KindTree, content)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestTreesThatAreDamaged(t *testing.T) {
	r := newRepository(t)
	file := store(t, r, "content\n")[0]
	r.Store().Recent().Clear()
	gone, err := objects.ParseID("1111111111111111111111111111111111111111")
	if err != nil {
		t.Fatal(err)
	}
	// The file of one tree holds the content of another.
	other := plant(t, r, objects.Entry{Name: "a", Mode: objects.ModeFile, ID: file})
	swapped := plant(t, r, objects.Entry{Name: "b", Mode: objects.ModeFile, ID: file})
	content, err := os.ReadFile(filepath.Join(r.Dir(), "objects", other.String()[:2], other.String()[2:]))
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(r.Dir(), "objects", swapped.String()[:2], swapped.String()[2:])
	if err := errors.Join(os.Chmod(place, 0o644), os.WriteFile(place, content, 0o644)); err != nil {
		t.Fatal(err)
	}
	nameless := plant(t, r, objects.Entry{Mode: objects.ModeFile, ID: file})
	for name, entry := range map[string]objects.Entry{
		"a directory is missing":               {Mode: objects.ModeTree, ID: gone},
		"a directory is a file":                {Mode: objects.ModeTree, ID: file},
		"a directory is another one":           {Mode: objects.ModeTree, ID: swapped},
		"a directory has a file without name":  {Mode: objects.ModeTree, ID: nameless},
		"a file is missing":                    {Mode: objects.ModeFile, ID: gone},
		"the target of a link cannot be found": {Mode: objects.ModeSymlink, ID: gone},
	} {
		entry.Name = "name"
		tree := plant(t, r, objects.Entry{Name: "dir", Mode: objects.ModeTree, ID: plant(t, r, entry)})
		if _, err := r.Tree(t.Context(), tree); !errors.Is(err, git.ErrCorrupt) {
			t.Errorf("%s: tree: %v, want ErrCorrupt", name, err)
		}
		if _, err := r.Diff(t.Context(), objects.EmptyTree, tree); err == nil {
			t.Errorf("%s: the differences have no error", name)
		}
	}
	// The next answers belong to their questions.
	sound := plant(t, r, objects.Entry{Name: "dir", Mode: objects.ModeTree, ID: other})
	if tree, err := r.Tree(t.Context(), sound); err != nil || tree.Lookup("dir/a") == nil || tree.Lookup("dir/a").Size != 8 {
		t.Errorf("a sound tree after damaged ones: %v, %v", tree, err)
	}
}

func TestTreeWithALinkedCommit(t *testing.T) {
	r := newRepository(t)
	elsewhere, err := objects.ParseID("1111111111111111111111111111111111111111")
	if err != nil {
		t.Fatal(err)
	}
	id := plant(t, r, objects.Entry{Name: "sub", Mode: objects.ModeGitlink, ID: elsewhere})
	tree, err := r.Tree(t.Context(), id)
	if err != nil || tree.Lookup("sub") == nil || tree.Lookup("sub").ID != elsewhere {
		t.Errorf("%v, %v, want the linked commit", tree, err)
	}
}

// TestEntry: only the directories on the way are read, whatever else the tree has.
func TestEntry(t *testing.T) {
	r := newRepository(t)
	file := store(t, r, "content\n")[0]
	gone, err := objects.ParseID("1111111111111111111111111111111111111111")
	if err != nil {
		t.Fatal(err)
	}
	dir := plant(t, r, objects.Entry{Name: "file", Mode: objects.ModeExecutable, ID: file})
	root := plant(t, r, objects.Entry{Name: "dir", Mode: objects.ModeTree, ID: dir}, objects.Entry{Name: "gone", Mode: objects.ModeTree, ID: gone})
	for path, want := range map[string]objects.ID{"dir/file": file, "dir": dir, "gone": gone, "dir/none": {}, "dir/file/none": {}, "none/file": {}, "": {}} {
		if e, is, err := r.Entry(t.Context(), root, path); err != nil || e.ID != want || is != (want != objects.ID{}) {
			t.Errorf("%q: %v, %v, %v", path, e, is, err)
		}
	}
	if _, _, err := r.Entry(t.Context(), root, "gone/file"); !errors.Is(err, git.ErrCorrupt) {
		t.Errorf("below what is missing: %v, want ErrCorrupt", err)
	}
}

// TestEqualDirectoriesAreReadOnce: a tree of a few objects can name one directory so often that nobody could read it each time.
func TestEqualDirectoriesAreReadOnce(t *testing.T) {
	r := newRepository(t)
	id := plant(t, r)
	const levels = 40 // 2^40 directories
	for range levels {
		id = plant(t, r, objects.Entry{Name: "a", Mode: objects.ModeTree, ID: id}, objects.Entry{Name: "b", Mode: objects.ModeTree, ID: id})
	}
	tree, err := r.Tree(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if e := tree.Lookup(strings.TrimSuffix(strings.Repeat("b/", levels), "/")); e == nil || e.ID != objects.EmptyTree {
		t.Errorf("the innermost directory is %v", e)
	}
}

// TestTreesNeedNoNewProcess: to start git costs more than to read most trees.
func TestTreesNeedNoNewProcess(t *testing.T) {
	program, starts := gitspy.Starts(t)
	r, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "repo.git"), git.Options{Git: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	file := store(t, r, "content\n")[0]
	before := plant(t, r, objects.Entry{Name: "a", Mode: objects.ModeFile, ID: file})
	after := plant(t, r, objects.Entry{Name: "dir", Mode: objects.ModeTree, ID: before})
	earlier := len(starts())
	for range 3 {
		if _, err := r.Tree(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		if changes, err := r.Diff(t.Context(), before, after); err != nil || len(changes) != 2 {
			t.Fatalf("differences %v, %v, want two", changes, err)
		}
	}
	if diff := cmp.Diff([]string{"cat-file"}, starts()[earlier:]); diff != "" {
		t.Errorf("git commands (-want +got):\n%s", diff)
	}
}
