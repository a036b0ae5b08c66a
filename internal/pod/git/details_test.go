// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitspy"
)

// TestDetailsAreReadTogether: an agent decides how many files and links there are; one exchange with git for each of them
// made the review of a history take half an hour on a busy machine.
func TestDetailsAreReadTogether(t *testing.T) {
	program, exchanges := gitspy.New(t)
	r, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "repo.git"), git.Options{Git: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	const n = 2500 // of each: more than are asked for at once
	var edits []objects.Edit
	want := make(map[string]judge.Entry)
	add := func(path string, mode uint32, content, target string) {
		id := store(t, r, content)[0]
		e := judge.Entry{Mode: mode, ID: id.String(), Size: int64(len(content)), Target: target}
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: mode, ID: id, Size: e.Size}})
		want[path] = e
	}
	long := strings.Repeat("l", 5000)
	for i, content := range []string{"file", "another file"} {
		add(fmt.Sprint("single/", i), judge.ModeFile, content, "")
	}
	add("long", judge.ModeSymlink, long, "")
	add("longer", judge.ModeSymlink, long+long, "")
	file, link := edits[0].Entry, store(t, r, "single/0")[0]
	for i := range n {
		path := fmt.Sprintf("files/%04d", i)
		edits = append(edits, objects.Edit{Path: path, Entry: file})
		want[path] = judge.Entry{Mode: file.Mode, ID: file.ID.String(), Size: file.Size}
		path = fmt.Sprintf("links/%04d", i)
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: judge.ModeSymlink, ID: link, Size: 8}})
		want[path] = judge.Entry{Mode: judge.ModeSymlink, ID: link.String(), Size: 8, Target: "single/0"}
	}
	empty := &objects.Tree{ID: objects.EmptyTree}
	writeTree := func(_ objects.ID, content []byte) error {
		_, err := r.Store().Write(objects.KindTree, content)
		return err
	}
	tree, err := empty.Apply(edits, writeTree)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Store().Write(objects.KindTree, nil); err != nil {
		t.Fatal(err)
	}
	r.Store().Recent().Clear()
	for name, compare := range map[string]func() ([]judge.Change, error){
		"diff":    func() ([]judge.Change, error) { return r.Diff(t.Context(), objects.EmptyTree, tree.ID) },
		"changes": func() ([]judge.Change, error) { return r.Changes(t.Context(), empty, tree) },
	} {
		var before int
		if _, _, err := r.Objects().Stat(t.Context(), tree.ID); err != nil {
			t.Fatal(err)
		}
		before = exchanges()
		changes, err := compare()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := make(map[string]judge.Entry)
		for _, c := range changes {
			got[c.Path] = c.New
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if asked := exchanges() - before; asked > len(want)/100 {
			t.Errorf("%s: %d exchanges for %d entries", name, asked, len(want))
		}
	}
}

// An object that is not there is named, not passed over.
func TestDetailsThatAreMissing(t *testing.T) {
	r := newRepository(t)
	missing, err := objects.ParseID("1111111111111111111111111111111111111111")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []uint32{judge.ModeFile, judge.ModeSymlink} {
		tree, err := (&objects.Tree{ID: objects.EmptyTree}).Apply([]objects.Edit{{Path: "a", Entry: &objects.Entry{Mode: mode, ID: missing}}},
			func(_ objects.ID, content []byte) error {
				_, err := r.Store().Write(objects.KindTree, content)
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Store().Write(objects.KindTree, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Diff(t.Context(), objects.EmptyTree, tree.ID); err == nil || !strings.Contains(err.Error(), missing.String()) {
			t.Errorf("mode %o: %v, want the missing object", mode, err)
		}
	}
}
