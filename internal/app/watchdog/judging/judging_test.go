// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judging_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/judging"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitspy"
)

// store is a repository that a test fills.
type store struct {
	t    *testing.T
	repo *git.Repository
}

func newStore(t *testing.T, o git.Options) *store {
	t.Helper()
	repo, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "repo.git"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repo.Close() })
	return &store{t: t, repo: repo}
}

// tree of files.
func (s *store) tree(files map[string]string) objects.ID {
	s.t.Helper()
	var edits []objects.Edit
	for path, content := range files {
		id, err := s.repo.Store().Write(objects.KindBlob, []byte(content))
		if err != nil {
			s.t.Fatal(err)
		}
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: objects.ModeFile, ID: id, Size: int64(len(content))}})
	}
	empty := &objects.Tree{ID: objects.EmptyTree}
	tree, err := empty.Apply(edits, func(_ objects.ID, content []byte) error {
		_, err := s.repo.Store().Write(objects.KindTree, content)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return tree.ID
}

// judge of changes since a tree.
func (s *store) judge(base objects.ID) *judging.Judge {
	return judging.New(s.repo, func() (objects.ID, error) { return base, nil }, slog.New(slog.DiscardHandler))
}

func terms() judging.Terms {
	t := judging.Terms{Policy: policy.Merge(policy.Sources{}), Plan: protocol.Plan{Allowed: []string{"web/**"}}}
	t.Policy.Changes.Binaries = policy.Deny
	return t
}

// rules that a judgement finds broken, with their paths.
func rules(j judge.Judgement) (list []string) {
	for _, v := range j.Violations {
		list = append(list, v.Rule+" "+v.Path)
	}
	return list
}

// What is judged is the difference to the base: by path, and by content that is read from the repository.
func TestTreesAreJudgedAgainstTheBase(t *testing.T) {
	s := newStore(t, git.Options{})
	base := s.tree(map[string]string{"web/a": "a", "lib/old.bin": "a\x00b"})
	now := s.tree(map[string]string{"web/a": "a", "web/new.bin": "c\x00d", "lib/old.bin": "a\x00b", "lib/b": "b"})
	want := []string{"allowed-areas lib/b", "binaries web/new.bin"}
	j := s.judge(base)
	verdict, err := j.Tree(t.Context(), now, terms(), judging.Surroundings{})
	if err != nil || verdict.Verdict != protocol.Invalid {
		t.Fatalf("%+v, %v", verdict, err)
	}
	if diff := cmp.Diff(want, rules(verdict)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	changes, err := s.repo.Diff(t.Context(), base, now)
	if err != nil {
		t.Fatal(err)
	}
	captured := workspace.Snapshot{Tree: now, Changes: changes, Found: []judge.Found{{Path: "web/pipe", Kind: judge.FoundFIFO}}}
	if verdict, err = j.Snapshot(t.Context(), captured, terms()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(want, "special-files web/pipe"), rules(verdict)); diff != "" {
		t.Errorf("violations of a capture (-want +got):\n%s", diff)
	}
	neighbour := j.Neighbours(terms())
	for tree, paths := range map[objects.ID]int{now: 2, base: 0} {
		if verdict, n, err := neighbour(t.Context(), tree); err != nil || n != paths || (verdict.Verdict == protocol.Valid) != (paths == 0) {
			t.Errorf("neighbour %s: %s with %d paths, %v", tree, verdict.Verdict, n, err)
		}
	}
}

// What was judged before is known again, and what cannot be read is refused and never passes.
func TestWhatCannotBeReadIsRefused(t *testing.T) {
	s := newStore(t, git.Options{})
	base := s.tree(nil)
	now := s.tree(map[string]string{"web/a": "a", "web/b": "b"})
	changes, err := s.repo.Diff(t.Context(), base, now)
	if err != nil {
		t.Fatal(err)
	}
	j := s.judge(base)
	for range 2 {
		if verdict, err := j.Snapshot(t.Context(), workspace.Snapshot{Tree: now, Changes: changes}, terms()); err != nil || verdict.Verdict != protocol.Valid {
			t.Fatalf("%+v, %v", verdict, err)
		}
	}
	if known, fresh := j.Known(); known != 2 || fresh != 0 {
		t.Errorf("%d known and %d fresh paths, want 2 and 0", known, fresh)
	}
	changes[1].New.ID = "1111111111111111111111111111111111111111"
	verdict, err := j.Snapshot(t.Context(), workspace.Snapshot{Tree: now, Changes: changes}, terms())
	if err != nil || verdict.Verdict == protocol.Valid {
		t.Errorf("with content that is not there: %+v, %v", verdict, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if verdict, err := j.Tree(ctx, now, terms(), judging.Surroundings{}); err == nil {
		t.Errorf("a judgement that was called off: %+v", verdict)
	}
}

// TestDirectoriesAreListedTogether: an agent decides how many directories there are, so that neither the exchanges with git
// nor the search in their parent may be one for each.
func TestDirectoriesAreListedTogether(t *testing.T) {
	program, exchanges := gitspy.New(t)
	s := newStore(t, git.Options{Git: program})
	const n = 3000 // more than are asked for at once
	files := map[string]string{"web/deep/1/2/3": "x", "web/readme": "x"}
	for i := range n {
		files[fmt.Sprintf("web/d%04d/file", i)] = "x"
	}
	base, now := s.tree(map[string]string{"web/readme": "x"}), s.tree(files)
	j := s.judge(base)
	before := exchanges()
	verdict, err := j.Tree(t.Context(), now, terms(), judging.Surroundings{})
	if err != nil || verdict.Verdict != protocol.Valid {
		t.Fatalf("%v %v, %v", verdict.Verdict, rules(verdict), err)
	}
	if asked := exchanges() - before; asked > n/100 {
		t.Errorf("%d exchanges for %d directories", asked, n)
	}
	files["web/d0007/FILE"], files["web/README"] = "y", "y"
	if verdict, err = j.Tree(t.Context(), s.tree(files), terms(), judging.Surroundings{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"names web/README", "names web/d0007/FILE", "names web/d0007/file"}
	if diff := cmp.Diff(want, rules(verdict)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
