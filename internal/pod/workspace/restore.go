// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Restore makes the workspace equal to a tree (or a commit's), byte for byte: all of it, or only the named files and
// directories. It hashes every existing file that could be the tree's, whatever its signature says. Ignored files and the root's .git stay,
// unless the volume holds more than the engine scans; it removes nested repositories and special files. The agent must be frozen or absent.
// ErrNotRestored names what differs in the end.
func (e *Engine) Restore(ctx context.Context, target objects.ID, paths ...string) (Restored, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, err := e.begin(ctx)
	if err != nil {
		return Restored{}, err
	}
	defer c.pack.Abort()
	tree, err := e.options.Repository.Tree(ctx, target)
	if err != nil {
		return Restored{}, fmt.Errorf("tree to restore: %w", err)
	}
	c.grant = true
	c.take()
	r := &restorer{capture: c, target: tree, paths: paths}
	if err := r.makeEqual(); err != nil {
		r.giveUp()
		return Restored{}, fmt.Errorf("restore workspace: %w", objects.WrapFull(err))
	}
	restored := Restored{Written: r.written, Deleted: r.deleted, Cleared: r.cleared}
	if restored.Tree, err = r.confirm(); err != nil {
		r.giveUp()
	}
	return restored, err
}

// giveUp leaves what was taken to the next capture. Names that the restore itself has removed, such as those under which it writes, did not come and go.
func (r *restorer) giveUp() {
	w := r.capture.engine.watcher
	own := w.take()
	own.gone = nil
	w.giveBack(own)
	r.capture.giveUp()
}

// confirm makes sure that what was written and what was there are the target: a scan finds nothing that has changed since.
func (r *restorer) confirm() (objects.ID, error) {
	c := r.capture
	if _, err := c.look(false); err != nil {
		return objects.ID{}, err
	}
	if c.over {
		return objects.ID{}, fmt.Errorf("%w: %w", ErrNotRestored, r.tooMany())
	}
	tree, err := c.build()
	if err != nil {
		return objects.ID{}, err
	}
	// What a checkpoint has that is being recorded did not come and go either.
	passed, err := c.passed(c.engine.recorded, c.engine.known)
	if err != nil {
		return objects.ID{}, err
	}
	if err := c.pack.Commit(); err != nil {
		return objects.ID{}, fmt.Errorf("restore workspace: %w", err)
	}
	c.engine.adopt(c, tree)
	c.engine.watcher.take()
	for _, problem := range []string{c.scanProblem, c.readProblem} {
		if problem != "" {
			return tree.ID, fmt.Errorf("%w: %s", ErrNotRestored, problem)
		}
	}
	if path, differs := r.difference(tree); differs {
		return tree.ID, fmt.Errorf("%w: %s differs: freeze or end the process that writes there and try again", ErrNotRestored, strconv.QuoteToASCII(path))
	}
	c.engine.restored.join(passed)
	return tree.ID, nil
}

// difference gives a path that is to be restored and is not.
func (r *restorer) difference(tree *objects.Tree) (path string, differs bool) {
	objects.Diff(tree, r.target, func(p string, _, _ *objects.Entry) {
		if !differs && r.selected(p) {
			path, differs = p, true
		}
	})
	if differs {
		return path, true
	}
	found, _ := findings(r.capture.known, r.capture.closed)
	for _, f := range found {
		if r.selected(f.Path) {
			return f.Path, true
		}
	}
	return "", false
}

// restorer makes files out of a tree.
type restorer struct {
	capture *capture
	target  *objects.Tree
	paths   []string
	// removed are paths that were removed and that the capture still knows.
	removed []string
	// todo are the entries to be written, in the order of the tree.
	todo []placing

	written, deleted, cleared int
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

// makeEqual scans, removes what the target does not have and writes what differs. It may be called again after a failure.
func (r *restorer) makeEqual() error {
	if err := r.scan(); err != nil {
		return err
	}
	err := r.clean(r.capture.engine.root, "", r.capture.known, r.target)
	r.forget()
	if err != nil {
		return err
	}
	if err := r.compare(); err != nil {
		return err
	}
	return r.writeAll()
}

// scan finds out what is there. If that is more than the engine scans, it first removes the excess.
func (r *restorer) scan() error {
	for _, remove := range []func() error{
		func() error { return r.sweep(true) },
		func() error { return r.sweep(false) },
		r.tooMany,
	} {
		c := r.capture
		s := c.scanner()
		known, err := s.scan(c.known, c.engine.base)
		if err != nil {
			return fmt.Errorf("scan workspace: %w", err)
		}
		if !s.partial {
			c.known = known
			for _, path := range s.gone {
				c.lose(path)
			}
			return nil
		}
		if len(r.paths) > 0 {
			return r.tooMany()
		}
		if err := remove(); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) tooMany() error {
	return fmt.Errorf("more than %d files and directories: roll back everything, or remove some", r.capture.engine.options.MaxEntries)
}

// forget takes what was removed out of what is known.
func (r *restorer) forget() {
	c := r.capture
	for _, path := range r.removed {
		n := c.known.lookup(path)
		switch {
		case n == nil:
			continue
		case n.sub != nil:
			n.sub.walk(path+"/", func(path string, _ *node) { c.lose(path) })
		default:
			c.lose(path)
		}
		c.known = c.known.set(c.owner, path, nil)
	}
	r.removed = nil
}

// compare hashes every file that is there and could be the target's. What is not is to be written.
func (r *restorer) compare() error {
	c := r.capture
	r.todo = r.todo[:0]
	var batch []reading
	var entries []*objects.Entry
	r.target.Walk(func(path string, e *objects.Entry) bool {
		if !r.selected(path) {
			return true
		}
		n := c.known.lookup(path)
		switch {
		case e.Mode == objects.ModeGitlink && n != nil && n.sig.isDir():
		case r.couldBe(n, e):
			batch, entries = append(batch, reading{path: path}), append(entries, e)
		default:
			r.todo = append(r.todo, placing{path: path, entry: e, fresh: n == nil})
		}
		return true
	})
	for len(batch) > 0 {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		n := min(len(batch), gathered)
		c.reader.fetchAll(batch[:n])
		for i := range batch[:n] {
			r.keep(&batch[i], entries[i])
		}
		batch, entries = batch[n:], entries[n:]
	}
	// What was found to differ belongs among what is missing, so that directories are entered once.
	slices.SortStableFunc(r.todo, func(a, b placing) int { return strings.Compare(a.path, b.path) })
	return nil
}

// couldBe tells whether what is there has the kind and size of an entry, and no other name through which it could change.
func (r *restorer) couldBe(n *node, e *objects.Entry) bool {
	if n == nil || n.sub != nil || n.mark&(outside|ignored|denied|linked) != 0 || n.sig.size != e.Size {
		return false
	}
	switch e.Mode {
	case objects.ModeSymlink:
		return n.sig.isLink()
	case objects.ModeFile, objects.ModeExecutable:
		return n.sig.isRegular() && n.sig.executable() == (e.Mode == objects.ModeExecutable)
	}
	return false
}

// keep takes a file that was hashed for what it is, if that is the entry.
func (r *restorer) keep(read *reading, e *objects.Entry) {
	c := r.capture
	if errors.Is(read.err, errLarge) {
		c.reader.measure(read)
	}
	read.data = nil
	have := read.content.entry
	if read.err != nil || have.ID != e.ID || have.Mode != e.Mode {
		r.todo = append(r.todo, placing{path: read.path, entry: e})
		return
	}
	c.settleEntry(read.path, e, read.node())
}

// settleEntry notes that the workspace has an entry of the target at a path.
func (c *capture) settleEntry(path string, e *objects.Entry, n node) {
	c.known = c.known.set(c.owner, path, &n)
	have := c.engine.tree.Lookup(path)
	if len(c.edits) == 0 && have != nil && have.ID == e.ID && have.Mode == e.Mode {
		return
	}
	c.edits = append(c.edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: e.Mode, ID: e.ID, Size: e.Size}})
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
		r.removed = append(r.removed, path)
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
