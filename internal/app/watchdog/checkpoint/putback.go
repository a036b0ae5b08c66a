// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Found are the paths of a workspace that no tree can hold, such as sockets and nested repositories.
type Found []string

// PutBack makes the workspace a tree again after a command of Tidewaiter ran in it: captured paths become what they are in the tree, and paths that no tree
// can hold go unless they were there before. Ignored files stay. It returns what it changed, and the paths that no tree can hold now. No process
// of the container may run. It does nothing twice, so that a crash before or after it needs no repair.
func (s *Service) PutBack(ctx context.Context, tree string, changes policy.Changes, before *Found) (changed []string, now Found, err error) {
	if err := s.Workspace.Need(ctx, s.Journal.State()); err != nil {
		return nil, nil, err
	}
	target, err := objects.ParseID(tree)
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := s.Workspace.Engine().Capture(ctx, workspace.Still{AtOnce: true, Limits: limitsOf(changes)})
	if err != nil {
		return nil, nil, fmt.Errorf("capture the workspace: %w", err)
	}
	if !snapshot.Settled {
		return nil, nil, fmt.Errorf("capture the workspace: it moves: %s", snapshot.Reason)
	}
	if snapshot.Tree != target {
		back, err := s.splice(ctx, snapshot.Tree, target, nil)
		if err != nil {
			return nil, nil, err
		}
		changed = back.differ
	}
	for _, f := range snapshot.Found {
		if before != nil && !slices.Contains(*before, f.Path) {
			changed = append(changed, f.Path)
			continue
		}
		now = append(now, f.Path)
	}
	if len(changed) == 0 {
		return nil, now, nil
	}
	if _, err := s.Workspace.Restore(ctx, target, changed...); err != nil {
		return nil, nil, fmt.Errorf("put back what the command changed: %w", err)
	}
	return changed, now, nil
}
