// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Trees are the tree that the work started from, and the tree of the workspace at its last capture or restore. A workspace that nobody can
// write to keeps that tree until the next one.
func (e *Engine) Trees() (base, now *objects.Tree, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, nil, ErrClosed
	case e.base == nil:
		return nil, nil, errNoBase
	}
	return e.base, e.tree, nil
}

// Forget lets the engine believe stored only what base and workspace hold, after other objects were dropped.
func (e *Engine) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.base != nil && e.tree != nil {
		e.stored = newIDSet(e.base, e.tree)
	}
}

// Ignored returns the paths that a capture would leave out, by the base's ignore rules, if they were made now as files. It ignores no path
// that the workspace's tree has.
func (e *Engine) Ignored(ctx context.Context, paths []string) ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.base == nil {
		return nil, errNoBase
	}
	var candidates []git.Candidate
	var of []string
	for _, path := range paths {
		if e.tree.Lookup(path) != nil || e.base.Lookup(path) != nil {
			continue
		}
		for i, c := range path {
			if c == '/' && e.tree.Lookup(path[:i]) == nil {
				candidates, of = append(candidates, git.Candidate{Path: path[:i], Dir: true}), append(of, path)
			}
		}
		candidates, of = append(candidates, git.Candidate{Path: path}), append(of, path)
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	match, err := e.ignore.Match(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("ask for ignored paths: %w", err)
	}
	var ignored []string
	for i, path := range of {
		if match[i] && (len(ignored) == 0 || ignored[len(ignored)-1] != path) {
			ignored = append(ignored, path)
		}
	}
	return ignored, nil
}
