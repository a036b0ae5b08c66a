// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// Restore makes the workspace equal to a tree (or a commit's), byte for byte: all of it, or only the named files and
// directories. Ignored files and the root's .git stay; nested repositories and special files go. The agent must be
// frozen or absent. Everything that was written is read again: ErrNotRestored names what differs.
func (e *Engine) Restore(ctx context.Context, target objects.ID, paths ...string) (Restored, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a, err := e.begin(ctx)
	if err != nil {
		return Restored{}, err
	}
	defer a.pack.Abort()
	tree, err := e.options.Repository.Tree(ctx, target)
	if err != nil {
		return Restored{}, fmt.Errorf("tree to restore: %w", err)
	}
	a.grant = true
	s := a.scanner()
	s.all = !e.assumptions.ChangeTime || !e.assumptions.MappedWrites
	known, err := s.scan(a.known, e.base)
	if err != nil {
		return Restored{}, fmt.Errorf("scan workspace: %w", err)
	}
	r := restorer{attempt: a, known: known, target: tree, paths: paths}
	if err := r.apply(); err != nil {
		return Restored{}, fmt.Errorf("restore workspace: %w", objects.WrapFull(err))
	}
	restored := Restored{Written: r.written, Deleted: r.deleted}
	restored.Tree, err = e.confirm(a, &r)
	return restored, err
}

// confirm reads what was written and makes sure that it is the target.
func (e *Engine) confirm(a *attempt, r *restorer) (objects.ID, error) {
	if _, err := a.look(false); err != nil {
		return objects.ID{}, err
	}
	tree, err := a.build()
	if err != nil {
		return objects.ID{}, err
	}
	if err := a.pack.Commit(); err != nil {
		return objects.ID{}, fmt.Errorf("restore workspace: %w", err)
	}
	e.adopt(a, tree)
	e.watcher.take()
	for _, problem := range []string{a.scanProblem, a.readProblem} {
		if problem != "" {
			return tree.ID, fmt.Errorf("%w: %s", ErrNotRestored, problem)
		}
	}
	var differs string
	objects.Diff(tree, r.target, func(path string, _, _ *objects.Entry) {
		if differs == "" && r.selected(path) {
			differs = path
		}
	})
	if differs == "" {
		found, _ := findings(a.known)
		for _, f := range found {
			if r.selected(f.Path) {
				differs = f.Path
				break
			}
		}
	}
	if differs != "" {
		return tree.ID, fmt.Errorf("%w: %s differs: freeze or end whatever writes there and try again", ErrNotRestored, strconv.QuoteToASCII(differs))
	}
	return tree.ID, nil
}

// restorer makes files out of a tree.
type restorer struct {
	attempt *attempt
	// known is the workspace as just scanned.
	known  *folder
	target *objects.Tree
	paths  []string

	written, deleted int
}

// selected tells whether a path is to be restored.
func (r *restorer) selected(path string) bool {
	if len(r.paths) == 0 {
		return true
	}
	return slices.ContainsFunc(r.paths, func(p string) bool {
		p = strings.Trim(p, "/")
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

// apply removes what the target does not have and writes what differs.
func (r *restorer) apply() error {
	root := r.attempt.engine.root
	if err := r.clean(root, "", r.known, r.target); err != nil {
		return err
	}
	var failure error
	r.target.Walk(func(path string, e *objects.Entry) bool {
		if r.attempt.ctx.Err() != nil {
			failure = context.Cause(r.attempt.ctx)
		} else if r.selected(path) && !r.holds(path, e) {
			failure = r.write(root, path, e)
		}
		return failure == nil
	})
	return failure
}

// clean removes what is in a directory and not in the target. Ignored files, and the directories on the way to them,
// stay.
func (r *restorer) clean(d dir, prefix string, known *folder, target *objects.Tree) error {
	if known == nil {
		return nil
	}
	for i := range known.nodes {
		n := &known.nodes[i]
		path := prefix + n.name
		want := target.Child(n.name)
		switch {
		case n.mark&ignored != 0:
			// In the way of something the target tracks (a tree older or newer than the base), it has to go as well.
			if want == nil || want.Mode == objects.ModeTree && n.sig.isDir() {
				continue
			}
		case n.sub != nil:
			kept, err := r.cleanDir(d, path, n, want)
			if err != nil {
				return err
			}
			if kept {
				continue
			}
		case n.mark&outside == 0 && want != nil && want.Mode != objects.ModeTree && want.Mode != objects.ModeGitlink:
			continue
		}
		if !r.selected(path) {
			continue
		}
		if err := remove(d, n.name); err != nil {
			return fmt.Errorf("%s: %w", strconv.QuoteToASCII(path), err)
		}
		r.deleted++
	}
	return nil
}

// cleanDir cleans a directory and tells whether it stays.
func (r *restorer) cleanDir(parent dir, path string, n *node, want *objects.Entry) (bool, error) {
	var below *objects.Tree
	if want != nil {
		below = want.Tree
	}
	isDir := want != nil && (want.Mode == objects.ModeTree || want.Mode == objects.ModeGitlink)
	if !isDir && r.selected(path) && (want != nil || !n.sub.holdsIgnored()) {
		return false, nil
	}
	d, err := openGranted(parent, n.name)
	if err != nil {
		return false, err
	}
	defer d.close()
	return true, r.clean(d, path+"/", n.sub, below)
}

// holdsIgnored tells whether something ignored is below.
func (f *folder) holdsIgnored() bool {
	holds := false
	f.marked("", ignored, func(string, *node) { holds = true })
	return holds
}

// holds tells whether the workspace has the entry already: it has not changed since it was read, what was read is the entry,
// and it has no other name through which it could change.
func (r *restorer) holds(path string, e *objects.Entry) bool {
	if e.Mode == objects.ModeGitlink {
		n := r.known.lookup(path)
		return n != nil && n.sig.isDir()
	}
	n := r.known.lookup(path)
	if n == nil || n.sub != nil || n.mark&(again|outside|ignored|linked) != 0 {
		return false
	}
	have := r.attempt.engine.tree.Lookup(path)
	return have != nil && have.ID == e.ID && have.Mode == e.Mode
}
