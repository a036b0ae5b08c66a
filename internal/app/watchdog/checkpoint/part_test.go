// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/judging"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// TestAPromotedPartIsValid: whatever base, last promotion and workspace hold, what Shadow Incremental promotes is valid as
// a whole, no path of it that broke a rule differs from the last promotion, and every other path is the workspace's.
func TestAPromotedPartIsValid(t *testing.T) {
	dir := t.TempDir()
	repo, err := git.Init(t.Context(), filepath.Join(dir, "repo.git"), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repo.Close() })
	parts, books := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		books++
		w, o := partWorld(t, repo, filepath.Join(dir, fmt.Sprint("volume-", books)))
		now := drawTree(t, repo, "workspace")
		changes, err := repo.Diff(t.Context(), mustID(t, w.Journal.State().Base.Tree), now)
		if err != nil {
			t.Fatal(err)
		}
		verdict, err := w.Judge.Snapshot(t.Context(), workspace.Snapshot{Tree: now, Changes: changes}, o.Terms)
		if err != nil {
			t.Fatal(err)
		}
		j := judged{snapshot: workspace.Snapshot{Tree: now, Changes: changes, Settled: true}, judgement: verdict}
		j.consequence = supervise.Act(verdict, o.Terms.Policy, true)
		if err := w.aim(t.Context(), o, &j); err != nil {
			t.Fatal(err)
		}
		if j.consequence.Action == protocol.ActionPartlyPromoted {
			parts++
			checkPart(t, w, o, j, now)
		} else if j.consequence.Promote != (verdict.Verdict == protocol.Valid) {
			t.Fatalf("verdict %s: %+v", verdict.Verdict, j.consequence)
		}
	})
	if parts == 0 {
		t.Error("no part was ever promoted: the test shows nothing")
	}
}

// partWorld is a trusted volume with a base and something promoted since.
func partWorld(t *rapid.T, repo *git.Repository, path string) (*Service, Occasion) {
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := trusted.OpenJournal(trusted.Dir(path), 1<<30, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	base, promoted := drawTree(t, repo, "base"), drawTree(t, repo, "promoted")
	for _, r := range []journal.Record{
		{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}},
		{Base: &journal.Base{Commit: "base", Tree: base.String()}},
		{Intent: &journal.Intent{Sequence: 1, Commit: "c1", Tree: promoted.String(), Delivery: "d1", OldDelivery: "base"}},
		{Done: &journal.Done{Sequence: 1}},
	} {
		if err := b.Note(r); err != nil {
			t.Fatal(err)
		}
	}
	e := policy.Merge(policy.Sources{})
	e.Execution.Strategy, e.Execution.Promotion = policy.StrategyShadow, policy.PromotionIncremental
	e.Changes.MaxFiles = rapid.Int64Range(0, 4).Draw(t, "max files")
	w := New(Options{Journal: b, Repository: repo, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Judge: judging.New(repo, func() (objects.ID, error) { return base, nil }, slog.New(slog.DiscardHandler))})
	return w, Occasion{Terms: judging.Terms{Policy: e, Plan: protocol.Plan{Allowed: []string{"a/**", "b"}, Forbidden: []string{"a/x/**"}}}}
}

// drawTree makes a small tree in which files, links and directories take each other's places.
func drawTree(t *rapid.T, repo *git.Repository, label string) objects.ID {
	var edits []objects.Edit
	for _, path := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a/f", "a/F", "a/x", "a/x/f", "a/x/y", "a/l", "b", "b/c", "c", "c/d"}), 0, 6).Draw(t, label) {
		mode := rapid.SampledFrom([]uint32{objects.ModeFile, objects.ModeFile, objects.ModeExecutable, objects.ModeSymlink}).Draw(t, path)
		id, err := repo.Store().Write(objects.KindBlob, []byte(rapid.SampledFrom([]string{"f", "x/f", "../c", "/etc/passwd"}).Draw(t, path)))
		if err != nil {
			t.Fatal(err)
		}
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: mode, ID: id}})
	}
	empty := &objects.Tree{ID: objects.EmptyTree}
	tree, err := empty.Apply(edits, func(_ objects.ID, content []byte) error {
		_, err := repo.Store().Write(objects.KindTree, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Store().Write(objects.KindTree, nil); err != nil {
		t.Fatal(err)
	}
	return tree.ID
}

func checkPart(t *rapid.T, w *Service, o Occasion, j judged, now objects.ID) {
	again, err := w.Judge.Tree(t.Context(), j.back.tree, o.Terms, judging.Surroundings{})
	if err != nil || again.Verdict != protocol.Valid {
		t.Fatalf("a part was promoted that is %s: %v, %+v", again.Verdict, err, again.Violations)
	}
	promoted := mustID(t, w.Journal.State().Promoted.Tree)
	violating := within(violatingPaths(j.judgement))
	for from, wrong := range map[objects.ID]func(string) bool{
		promoted: violating,
		now:      func(path string) bool { return !violating(path) && !inTheWay(path, violatingPaths(j.judgement)) },
	} {
		differ, err := w.Repository.Diff(t.Context(), from, j.back.tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range differ {
			if wrong(c.Path) {
				t.Fatalf("path %s of the part %s is not as it should be (violations %+v)", c.Path, j.back.tree, j.judgement.Violations)
			}
		}
	}
}

// inTheWay tells whether a path stands where the directory of another one has to be.
func inTheWay(path string, others []string) bool {
	return slices.ContainsFunc(others, within([]string{path}))
}

func mustID(t *rapid.T, text string) objects.ID {
	id, err := objects.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
