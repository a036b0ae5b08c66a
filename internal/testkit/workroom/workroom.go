// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workroom makes a trusted volume with a base, and a workspace with its files, for tests of a watchdog's services without an agent,
// a socket or an intake.
package workroom

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/judging"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

// Room is a Feature's volumes, and the services on them as one process has them.
type Room struct {
	t    testing.TB
	Dir  trusted.Dir
	Root string // of the workspace
	// Base is the commit of the base.
	Base   objects.ID
	Orders protocol.Orders
	// Reported has the reports of every process.
	Reported []protocol.CheckpointReport
	Answers  []protocol.RequestReport

	Journal    *trusted.Journal
	Repository *git.Repository
	Workspace  *checkpoint.Workspace
	Judge      *judging.Judge
	Health     *health.Health
	Checkpoint *checkpoint.Service
}

// New room whose base has the files. The task form may change web.
func New(t testing.TB, files map[string]string) *Room {
	t.Helper()
	dir := container.TempDir(t)
	r := &Room{t: t, Dir: trusted.Dir(filepath.Join(dir, "trusted")), Root: filepath.Join(dir, "workspace")}
	r.must(errors.Join(os.Mkdir(string(r.Dir), 0o755), os.Mkdir(r.Root, 0o755)))
	r.Orders = protocol.Orders{
		Version: protocol.OrdersVersion, Attempt: 1, Run: "agent", NextCheckpoint: 1, Feature: protocol.FeatureRef{Namespace: "shop", Name: "login"},
		Tasks: []protocol.Task{{Name: "form"}}, Plan: protocol.Plan{Allowed: []string{"web/**"}}, Policy: policy.Merge(policy.Sources{}),
		Delivery: protocol.Delivery{Branch: "tidewaiter/login", Push: true, AuthorName: "Tidewaiter", AuthorEmail: "bot@example.com"},
	}
	repo, err := git.Init(t.Context(), r.Dir.Repository(), git.Options{})
	r.must(err)
	r.Repository = repo
	tree := r.tree(files)
	person := objects.Person{Name: "A", Email: "a@example.com", When: time.Unix(1, 0).UTC()}
	r.Base, err = repo.WriteCommit(objects.Commit{Tree: tree, Author: person, Committer: person, Message: "Begin"})
	r.must(err)
	r.must(repo.UpdateRefs(t.Context(), []git.RefUpdate{{Name: protocol.RefBase, New: r.Base}, {Name: protocol.RefDelivery, New: r.Base}}))
	r.must(repo.Close())
	r.Open(nil)
	for _, record := range []journal.Record{
		{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}, {Orders: &r.Orders}, {Base: &journal.Base{Commit: r.Base.String(), Tree: tree.String()}},
		{TaskBegun: &journal.TaskBegun{Name: "form", Policy: r.Orders.Policy, Plan: r.Orders.Plan}},
	} {
		r.must(r.Journal.Note(record))
	}
	r.must(r.Workspace.Open(t.Context(), r.Journal.State()))
	_, err = r.Workspace.Restore(t.Context(), tree)
	r.must(err)
	t.Cleanup(r.close)
	return r
}

func (r *Room) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// tree of files, in the repository.
func (r *Room) tree(files map[string]string) objects.ID {
	r.t.Helper()
	var edits []objects.Edit
	for path, content := range files {
		id, err := r.Repository.Store().Write(objects.KindBlob, []byte(content))
		r.must(err)
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: objects.ModeFile, ID: id, Size: int64(len(content))}})
	}
	empty := &objects.Tree{ID: objects.EmptyTree}
	tree, err := empty.Apply(edits, func(_ objects.ID, content []byte) error {
		_, err := r.Repository.Store().Write(objects.KindTree, content)
		return err
	})
	r.must(err)
	return tree.ID
}

// Open the volumes as a new process does; the one before is gone, wherever it was.
func (r *Room) Open(probe steps.Probe) {
	r.t.Helper()
	if r.Journal != nil {
		r.close()
	}
	log := slog.New(slog.DiscardHandler)
	var err error
	r.Journal, err = trusted.OpenJournal(r.Dir, trusted.FoldAbove, time.Now)
	r.must(err)
	r.Repository, err = git.Open(r.t.Context(), r.Dir.Repository(), git.Options{})
	r.must(err)
	r.Health = &health.Health{}
	r.Workspace = checkpoint.NewWorkspace(workspace.Options{Root: r.Root, Repository: r.Repository, Scratch: r.Dir.Scratch(), Now: time.Now, Logger: log}, r.Health)
	r.Judge = judging.New(r.Repository, func() (objects.ID, error) { return objects.ParseID(r.Journal.State().Base.Tree) }, log)
	r.Checkpoint = checkpoint.New(checkpoint.Options{
		Feature: r.Orders.Feature.Name, Dir: r.Dir, Journal: r.Journal, Guard: func() error { return nil }, Repository: r.Repository,
		Workspace: r.Workspace, Judge: r.Judge, Reports: reports{r}, Waiting: func() int { return 0 }, Refused: func() int { return 0 }, Health: r.Health,
		Now: time.Now, Log: log, Probe: probe,
	})
}

func (r *Room) close() {
	r.must(errors.Join(r.Workspace.Close(), r.Checkpoint.Close(), r.Repository.Close(), r.Journal.Close()))
}

// reports are told to the room.
type reports struct{ room *Room }

// Checkpoint implements checkpoint.Reports.
func (r reports) Checkpoint(c protocol.CheckpointReport) error {
	r.room.Reported = append(r.room.Reported, c)
	return nil
}

// Answer implements checkpoint.Reports: an answer that was given is not given again.
func (r reports) Answer(a protocol.RequestReport) error {
	if _, known := r.room.Journal.State().Requests[a.ID]; known {
		return nil
	}
	r.room.Answers = append(r.room.Answers, a)
	return r.room.Journal.Note(journal.Record{Request: &a})
}

// Occasion of a checkpoint for an interval.
func (r *Room) Occasion() checkpoint.Occasion {
	return checkpoint.Occasion{Trigger: protocol.TriggerInterval, Task: "form", Terms: checkpoint.TermsOf(r.Orders), Orders: r.Orders}
}

// Write a file of the workspace.
func (r *Room) Write(path, content string) {
	r.t.Helper()
	path = filepath.Join(r.Root, path)
	r.must(errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
}

// Remove a file of the workspace.
func (r *Room) Remove(path string) {
	r.t.Helper()
	r.must(os.Remove(filepath.Join(r.Root, path)))
}

// Read a file of the workspace; empty if there is none.
func (r *Room) Read(path string) string {
	r.t.Helper()
	content, err := os.ReadFile(filepath.Join(r.Root, path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return string(content)
}

// Promoted is a file of the tree promoted last; empty if there is none.
func (r *Room) Promoted(path string) string {
	r.t.Helper()
	id, err := objects.ParseID(r.Journal.State().Promoted.Tree)
	r.must(err)
	tree, err := r.Repository.Tree(r.t.Context(), id)
	r.must(err)
	entry := tree.Lookup(path)
	if entry == nil {
		return ""
	}
	_, content, err := r.Repository.Objects().Read(r.t.Context(), entry.ID, 1<<20)
	r.must(err)
	return string(content)
}

// WantRefs fails the test if the refs differ from the journal.
func (r *Room) WantRefs() {
	r.t.Helper()
	j := r.Journal.State()
	r.must(trusted.CheckRefs(r.t.Context(), r.Repository, trusted.Ref{Name: protocol.RefBase, Commit: j.Base.Commit},
		trusted.Ref{Name: protocol.RefChain, Commit: j.Chain.Commit}, trusted.Ref{Name: protocol.RefDelivery, Commit: j.Promoted.Commit}))
}
