// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Workspace opens its engine when it is needed: a run without an agent mostly does not need it. An act may open it while the loop asks for its engine.
type Workspace struct {
	options workspace.Options
	health  *health.Health
	engine  atomic.Pointer[workspace.Engine]
}

// NewWorkspace is not opened yet.
func NewWorkspace(o workspace.Options, h *health.Health) *Workspace {
	return &Workspace{options: o, health: h}
}

// Engine of the workspace; nil before it is opened.
func (w *Workspace) Engine() *workspace.Engine { return w.engine.Load() }

// Root of the workspace.
func (w *Workspace) Root() string { return w.options.Root }

// Open the workspace. It assumes the state after the last checkpoint; the engine finds out the real one.
func (w *Workspace) Open(ctx context.Context, s journal.State) error {
	engine := w.Engine()
	if engine == nil {
		var err error
		if engine, err = workspace.Open(ctx, w.options); err != nil {
			return fmt.Errorf("open workspace: %w", err)
		}
		w.engine.Store(engine)
	}
	base, err := objects.ParseID(s.Base.Commit)
	if err != nil {
		return err
	}
	current, err := objects.ParseID(s.Workspace.Tree)
	if err != nil {
		return err
	}
	return engine.Reset(ctx, base, current)
}

// Need opens it if it is not open.
func (w *Workspace) Need(ctx context.Context, s journal.State) error {
	if w.Engine() != nil {
		return nil
	}
	return w.Open(ctx, s)
}

// Restore makes the workspace another tree, or only the paths of it.
func (w *Workspace) Restore(ctx context.Context, tree objects.ID, paths ...string) (workspace.Restored, error) {
	done, err := w.Engine().Restore(ctx, tree, paths...)
	if err == nil {
		w.tellCleared(ctx, done.Cleared)
	}
	return done, err
}

// MakeRoom clears a workspace of what no checkpoint holds: files that Git ignores, and the agent's own repository.
func (w *Workspace) MakeRoom(ctx context.Context) error {
	cleared, err := w.Engine().ClearIgnored(ctx)
	w.tellCleared(ctx, cleared)
	return err
}

// tellCleared says what was removed from a workspace that was too full to be prepared.
func (w *Workspace) tellCleared(ctx context.Context, names int) {
	if names == 0 {
		return
	}
	w.options.Logger.WarnContext(ctx, "The workspace was full: removed what Git ignores", "names", names)
	w.health.Tell(health.Workspace, fmt.Sprintf(
		"it was full, so the watchdog removed %d files and directories that Git ignores; set a larger spec.workspace.size if this happens again", names))
}

// Close closes the engine, if there is one.
func (w *Workspace) Close() error {
	engine := w.Engine()
	if engine == nil {
		return nil
	}
	return engine.Close()
}
