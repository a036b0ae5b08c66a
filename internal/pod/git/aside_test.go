// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// TestAsideSample: a change can be among those that are kept wherever it stands, and the first ones are an outline.
func TestAsideSample(t *testing.T) {
	r := newRepository(t)
	file := store(t, r, "content\n")[0]
	var entries []objects.Entry
	for i := range 9 {
		entries = append(entries, objects.Entry{Name: fmt.Sprint(i), Mode: objects.ModeFile, ID: file})
	}
	tree := plant(t, r, entries...)
	a := git.NewAside(r)
	t.Cleanup(func() { _ = a.Close() })
	paths := func(list []judge.Change, total int, err error) string {
		if err != nil || total != 9 {
			t.Errorf("%d changes: %v", total, err)
		}
		var b strings.Builder
		for _, c := range list {
			b.WriteString(c.Path)
		}
		return b.String()
	}
	if got := paths(a.Outline(t.Context(), objects.EmptyTree, tree, 3)); got != "012" {
		t.Errorf("outline: %s", got)
	}
	var drawn []int
	draw := func(n int) int { drawn = append(drawn, n); return n % 5 }
	every := func(string) bool { return true }
	if got := paths(a.Sample(t.Context(), objects.EmptyTree, tree, 3, every, draw)); got != "456" {
		t.Errorf("sample: %s", got)
	}
	late := func(path string) bool { return path > "6" }
	if list, total, err := a.Sample(t.Context(), objects.EmptyTree, tree, 3, late, draw); err != nil || total != 2 || len(list) != 2 || list[0].Path != "7" {
		t.Errorf("of the last two: %d of %d, %v", len(list), total, err)
	}
	if want := []int{4, 5, 6, 7, 8, 9}; !slices.Equal(drawn, want) {
		t.Errorf("drawn from %v, want %v", drawn, want)
	}
}

// TestAsidePatchOfPaths: only these are compared, and nothing in a name is a pattern.
func TestAsidePatchOfPaths(t *testing.T) {
	r := newRepository(t)
	file := store(t, r, "content\n")[0]
	var entries []objects.Entry
	for _, name := range []string{"*", ":(top)b", "a", "b"} {
		entries = append(entries, objects.Entry{Name: name, Mode: objects.ModeFile, ID: file})
	}
	tree := plant(t, r, entries...)
	a := git.NewAside(r)
	t.Cleanup(func() { _ = a.Close() })
	for _, tc := range []struct{ paths, want []string }{
		{nil, []string{"*", ":(top)b", "a", "b"}},
		{[]string{"*"}, []string{"*"}},
		{[]string{":(top)b", "a"}, []string{":(top)b", "a"}},
	} {
		var got []string
		err := a.Patch(t.Context(), objects.EmptyTree, tree, 1<<20, func(in *bufio.Reader) error {
			text, err := io.ReadAll(in)
			for line := range strings.Lines(string(text)) {
				if name, is := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); is {
					got = append(got, name)
				}
			}
			return err
		}, tc.paths...)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", tc.paths, err, diff)
		}
	}
}

// TestAsidePatchOfAPathThatIsAFolder: a path stands for a file, and not for what is below a folder of its name.
func TestAsidePatchOfAPathThatIsAFolder(t *testing.T) {
	r := newRepository(t)
	file := store(t, r, "content\n")[0]
	below := plant(t, r, objects.Entry{Name: "below", Mode: objects.ModeFile, ID: file})
	b := objects.Entry{Name: "b", Mode: objects.ModeFile, ID: file}
	asFile := plant(t, r, objects.Entry{Name: "a", Mode: objects.ModeFile, ID: file})
	asFolder := plant(t, r, objects.Entry{Name: "a", Mode: objects.ModeTree, ID: below}, b)
	a := git.NewAside(r)
	t.Cleanup(func() { _ = a.Close() })
	for _, trees := range [][2]objects.ID{{asFile, asFolder}, {asFolder, asFile}} {
		var got []string
		err := a.Patch(t.Context(), trees[0], trees[1], 1<<20, func(in *bufio.Reader) error {
			text, err := io.ReadAll(in)
			for line := range strings.Lines(string(text)) {
				if name, is := strings.CutPrefix(strings.TrimSpace(line), "diff --git "); is {
					got = append(got, name)
				}
			}
			return err
		}, "a", "b")
		if diff := cmp.Diff([]string{"a/a b/a", "a/b b/b"}, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
