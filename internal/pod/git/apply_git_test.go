// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
)

// TestPatchesOfGitApply: what stock git writes as the difference of two trees makes the one out of the other.
func TestPatchesOfGitApply(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo.git")
	r, err := git.Init(t.Context(), dir, git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	work := t.TempDir()
	plain(t, work, "init", "-q", "-b", "main")
	for i := range 6 {
		write(t, work, fmt.Sprintf("dir %d/file%d.txt", i%3, i), lines(rand.New(rand.NewPCG(1, uint64(i))), 40))
	}
	before := commit(t, work, "Begin")
	for round := range 15 {
		random := rand.New(rand.NewPCG(7, uint64(round)))
		scramble(t, random, work)
		after := commit(t, work, fmt.Sprint("Round ", round))
		plain(t, dir, "fetch", "-q", work, "main")
		text := rawDiff(t, work, before.String(), after.String())
		over, err := r.Tree(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.ApplyPatch(t.Context(), over, text)
		if err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, text)
		}
		if want := plain(t, work, "rev-parse", after.String()+"^{tree}"); got.Tree.ID.String() != want {
			t.Fatalf("round %d: tree %s, want %s\n%s", round, got.Tree.ID, want, text)
		}
		want, err := r.Diff(t.Context(), before, after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Changes, cmp.Comparer(func(a, b judge.Change) bool { return a == b })); diff != "" {
			t.Fatalf("round %d: changes (-want +got):\n%s", round, diff)
		}
		whole, err := r.Tree(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		if changes, err := r.Changes(t.Context(), over, whole); err != nil || !slices.Equal(want, changes) {
			t.Fatalf("round %d: between the trees in memory %v (%v), want %v", round, changes, err, want)
		}
		if raw := diffTree(t, work, before.String(), after.String()); !slices.Equal(raw, outline(want)) {
			t.Fatalf("round %d: differences %v, want %v", round, outline(want), raw)
		}
		before = after
	}
	plain(t, dir, "fsck", "--strict")
}

// diffTree is what git itself says of two commits: modes, IDs and path.
func diffTree(t *testing.T, work, before, after string) []string {
	t.Helper()
	fields := strings.Split(strings.TrimSuffix(plain(t, work, "diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", before, after), "\x00"), "\x00")
	var all []string
	for i := 0; i+1 < len(fields); i += 2 {
		words := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		all = append(all, strings.Join(append(words[:4], fields[i+1]), " "))
	}
	return all
}

// outline of changes as diffTree has them.
func outline(changes []judge.Change) []string {
	var all []string
	for _, c := range changes {
		for _, e := range []*judge.Entry{&c.Old, &c.New} {
			if e.Mode == 0 {
				e.ID = strings.Repeat("0", 40)
			}
		}
		all = append(all, fmt.Sprintf("%06o %06o %s %s %s", c.Old.Mode, c.New.Mode, c.Old.ID, c.New.ID, c.Path))
	}
	return all
}

// rawDiff is the output of git as it is: its last newline counts.
func rawDiff(t *testing.T, work, before, after string) string {
	t.Helper()
	out, err := exec.Command("git", "-C", work, "diff", "--no-ext-diff", "-M", "-C", before, after).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func lines(random *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "line %d\n", random.IntN(30))
	}
	return b.String()
}

// scramble changes, adds, removes, renames and makes executable, and always changes something.
func scramble(t *testing.T, random *rand.Rand, work string) {
	t.Helper()
	write(t, work, "counter", fmt.Sprint(random.Uint64()))
	write(t, work, fmt.Sprintf("new/ümlaut \"%d\".txt", random.IntN(5)), lines(random, random.IntN(20))+"end")
	files := strings.Split(strings.TrimRight(plain(t, work, "ls-files", "-z"), "\x00"), "\x00")
	for range 3 {
		file := filepath.Join(work, files[random.IntN(len(files))])
		content, err := os.ReadFile(file)
		if err != nil {
			continue // removed or renamed a moment ago
		}
		switch random.IntN(5) {
		case 0:
			err = os.Remove(file)
		case 1:
			err = os.Rename(file, filepath.Join(work, fmt.Sprintf("moved%d", random.IntN(3))))
		case 2:
			err = makeExecutable(file)
		default:
			all := strings.SplitAfter(string(content), "\n")
			all[random.IntN(len(all))] = fmt.Sprintf("changed %d\r\n", random.IntN(100))
			err = os.WriteFile(file, []byte(strings.Join(all, "")), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
