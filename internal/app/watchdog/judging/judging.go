// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judging gives core/judge its input: trees and contents of the trusted repository, and the terms from the beginning of a task.
package judging

import (
	"context"
	"log/slog"

	"github.com/tidewaiter/tidewaiter/internal/core/checks"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Terms are the policy, plan, role and locks of a check.
type Terms struct {
	Policy policy.Effective
	Plan   protocol.Plan
	// Role of the agent, and the contracts whose lock its Feature holds.
	Role  string
	Locks []string
}

// Judge checks what differs from the base. It is not safe for concurrent use.
type Judge struct {
	repo *git.Repository
	base func() (objects.ID, error)
	log  *slog.Logger
	// memory of earlier checks of the workspace.
	memory judge.Cache
}

// New makes a Judge of changes since the tree of the base.
func New(repo *git.Repository, base func() (objects.ID, error), log *slog.Logger) *Judge {
	return &Judge{repo: repo, base: base, log: log}
}

// Snapshot checks a capture. If the context ends, the result is an error and not a verdict.
func (j *Judge) Snapshot(ctx context.Context, s workspace.Snapshot, t Terms) (judge.Judgement, error) {
	return j.judge(ctx, s.Tree, s.Changes, t, Surroundings{Found: s.Found, Workspace: s.Workspace}, &j.memory)
}

// Surroundings are facts about the workspace that a check needs in addition to a tree.
type Surroundings struct {
	Found     []judge.Found
	Workspace judge.Workspace
}

// Tree checks a tree that is not, or not yet, the workspace's.
func (j *Judge) Tree(ctx context.Context, tree objects.ID, t Terms, beside Surroundings) (judge.Judgement, error) {
	base, err := j.base()
	if err != nil {
		return judge.Judgement{}, err
	}
	changes, err := j.repo.Diff(ctx, base, tree)
	if err != nil {
		return judge.Judgement{}, err
	}
	return j.judge(ctx, tree, changes, t, beside, j.memory.Beside())
}

// Neighbours checks trees that have most of their changes in common, at the cost of what differs. It returns the result for each, and how
// many paths it changes.
func (j *Judge) Neighbours(t Terms) func(context.Context, objects.ID) (judge.Judgement, int, error) {
	memory := j.memory.Beside()
	return func(ctx context.Context, tree objects.ID) (judge.Judgement, int, error) {
		base, err := j.base()
		if err != nil {
			return judge.Judgement{}, 0, err
		}
		changes, err := j.repo.Diff(ctx, base, tree)
		if err != nil {
			return judge.Judgement{}, 0, err
		}
		verdict, err := j.judge(ctx, tree, changes, t, Surroundings{}, memory)
		return verdict, len(changes), err
	}
}

// Known returns how many changes of the last snapshot earlier checks had covered, and how many they had not.
func (j *Judge) Known() (known, fresh int64) { return j.memory.Last() }

func (j *Judge) judge(ctx context.Context, tree objects.ID, changes []judge.Change, t Terms, beside Surroundings, memory *judge.Cache) (judge.Judgement, error) {
	base, err := j.base()
	if err != nil {
		return judge.Judgement{}, err
	}
	return judge.Judge(ctx, judge.Input{
		Changes: changes, Plan: t.Plan, Policy: t.Policy, Role: t.Role, Locks: t.Locks,
		Names: j.names(ctx, tree), BaseNames: j.names(ctx, base), Contents: j.contents(ctx), Compile: checks.Compile,
		Found: beside.Found, Workspace: beside.Workspace, Cache: memory,
	})
}

// contents reads blobs of the trusted repository for a check. What cannot be read is not checked, and so refused.
func (j *Judge) contents(ctx context.Context) judge.Contents {
	return func(hexIDs []string, limit int64, visit func(int, []byte, bool)) {
		ids := make([]objects.ID, len(hexIDs))
		for i, hexID := range hexIDs {
			// An id that cannot be parsed becomes the zero id, which no object has.
			ids[i], _ = objects.ParseID(hexID)
		}
		err := j.repo.Objects().ReadAll(ctx, ids, limit, func(i int, content []byte, err error) {
			visit(i, content, err == nil)
		})
		if err != nil {
			j.log.ErrorContext(ctx, "Cannot read contents to check them", "error", err.Error())
		}
	}
}
