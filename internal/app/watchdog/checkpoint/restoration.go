// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/judging"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// restoration is what the workspace goes back to.
type restoration struct {
	// tree of all of it afterwards.
	tree objects.ID
	// paths are the only ones that are touched; nil for all.
	paths [][]byte
	// differ are the paths that become different by it.
	differ []string
	// chosen by a user.
	chosen bool
	// to is the number of the checkpoint that was chosen, or at the beginning of an aborted task; 0 for what was promoted last, and for the base if
	// toBase is set. request is the id of who chose it.
	to      int64
	toBase  bool
	request string
}

// aim finds out what the workspace goes back to, where something is to be taken back.
func (s *Service) aim(ctx context.Context, o Occasion, j *judged) error {
	if j.back != nil || j.consequence.Restore == supervise.RestoreNothing {
		return nil
	}
	promoted, err := objects.ParseID(s.Journal.State().Promoted.Tree)
	if err != nil {
		return err
	}
	part := j.consequence.Restore == supervise.RestorePart
	if j.consequence.Restore != supervise.RestoreAll {
		if j.back, err = s.splice(ctx, j.snapshot.Tree, promoted, violatingPaths(j.judgement)); err != nil {
			return err
		}
	}
	if part {
		verdict, err := s.judgePart(ctx, o, *j)
		if err != nil {
			return err
		}
		j.consequence = supervise.Part(verdict, j.back.tree != promoted)
	}
	if j.consequence.Restore == supervise.RestoreAll {
		j.back, err = s.splice(ctx, j.snapshot.Tree, promoted, nil)
	}
	return err
}

// wentBack is what a notice says of what went back; nil if nothing did.
func (j judged) wentBack() *notice.Back {
	if j.back == nil {
		return nil
	}
	paths := touched(j)
	return &notice.Back{Paths: paths, Kept: j.kept(paths)}
}

// kept counts the changes that stay when the paths go back.
func (j judged) kept(paths []string) (n int) {
	gone := within(paths)
	for _, c := range j.snapshot.Changes {
		if !gone(c.Path) {
			n++
		}
	}
	return n
}

// judgePart checks what a workspace holds once its violating paths are as they were promoted last: as a whole, with
// everything else that was found in it.
func (s *Service) judgePart(ctx context.Context, o Occasion, j judged) (judge.Judgement, error) {
	beside := judging.Surroundings{Workspace: j.snapshot.Workspace}
	gone := within(violatingPaths(j.judgement))
	for _, f := range j.snapshot.Found {
		if !gone(f.Path) {
			beside.Found = append(beside.Found, f)
		}
	}
	return s.Judge.Tree(ctx, j.back.tree, o.Terms, beside)
}

// splice puts together the tree that a workspace has once the paths are as in another tree; nil for all paths.
func (s *Service) splice(ctx context.Context, current, other objects.ID, paths []string) (*restoration, error) {
	have, err := s.Repository.Tree(ctx, current)
	if err != nil {
		return nil, fmt.Errorf("tree of the workspace: %w", err)
	}
	from, err := s.Repository.Tree(ctx, other)
	if err != nil {
		return nil, fmt.Errorf("tree to go back to: %w", err)
	}
	pack := s.Repository.Store().NewPack(nil)
	defer pack.Abort()
	tree, differ, err := have.Splice(from, within(paths), func(id objects.ID, content []byte) error {
		return pack.AddNamed(id, objects.KindTree, content)
	})
	if err == nil {
		err = pack.Commit()
	}
	if err != nil {
		return nil, fmt.Errorf("put a tree together: %w", err)
	}
	back := &restoration{tree: tree.ID, differ: differ}
	if paths != nil {
		back.paths = rawPaths(paths, differ)
	}
	return back, nil
}

// rawPaths are all of the paths, each once: the intended ones and the ones that differ by it, because a file can be in
// the way of a directory.
func rawPaths(lists ...[]string) [][]byte {
	raw, seen := [][]byte{}, map[string]bool{}
	for _, list := range lists {
		for _, path := range list {
			if !seen[path] {
				seen[path] = true
				raw = append(raw, []byte(path))
			}
		}
	}
	return raw
}

// within tells whether a path is one of the paths, or beneath one; nil are all.
func within(paths []string) func(string) bool {
	if paths == nil {
		return func(string) bool { return true }
	}
	set := make(map[string]bool, len(paths))
	for _, path := range paths {
		set[path] = true
	}
	return func(path string) bool {
		for {
			if set[path] {
				return true
			}
			i := strings.LastIndexByte(path, '/')
			if i < 0 {
				return false
			}
			path = path[:i]
		}
	}
}

// violatingPaths are the paths that break a rule which blocks; never nil.
func violatingPaths(j judge.Judgement) []string {
	paths, seen := []string{}, map[string]bool{}
	for _, v := range j.Violations {
		if v.Path != "" && v.Severity.Blocks() && !seen[v.Path] {
			seen[v.Path] = true
			paths = append(paths, v.Path)
		}
	}
	return paths
}
