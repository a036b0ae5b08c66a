// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// seeded is the repository of a base with one file at the end of folders, and its tree. Nothing of it is in memory.
func seeded(t *testing.T, folders []string) (*acts, objects.ID) {
	t.Helper()
	dir := t.TempDir()
	made, err := git.Init(t.Context(), dir, git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind objects.Kind, content []byte) objects.ID {
		id, err := made.Store().Write(kind, content)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	e := objects.Entry{Name: "old.go", Mode: objects.ModeFile, ID: write(objects.KindBlob, []byte("package old\n"))}
	for _, name := range slices.Backward(folders) {
		_, content := objects.NewTree([]objects.Entry{e})
		e = objects.Entry{Name: name, Mode: objects.ModeTree, ID: write(objects.KindTree, content)}
	}
	_, content := objects.NewTree([]objects.Entry{e})
	root := write(objects.KindTree, content)
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := git.Open(t.Context(), dir, git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return &acts{services: &services{repository: r}}, root
}

// TestFilesBesideDeepFolders: a look reads each folder on the way to a new one once, however deep an agent makes it.
func TestFilesBesideDeepFolders(t *testing.T) {
	below := strings.Split(strings.Repeat("a/", 127)+"a", "/")
	x, root := seeded(t, below)
	var folders []string
	for i := range 32 {
		folders = append(folders, strings.Join(below, "/")+fmt.Sprintf("/new%d", i)+strings.Repeat("/b", 126))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // it needs seconds, and minutes if it reads folders again for each one below
	defer cancel()
	files, err := x.beside(ctx, root, folders)
	if err != nil {
		t.Fatal(err)
	}
	want := []review.Listed{{Path: strings.Join(below, "/") + "/old.go", Size: 12}}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
