// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Tree reads a whole tree, or that of a commit, with the sizes of its blobs. ErrCorrupt says that something in it is missing or damaged.
func (r *Repository) Tree(ctx context.Context, id objects.ID) (*objects.Tree, error) {
	root, err := r.TreeOf(ctx, id)
	if err != nil {
		return nil, err
	}
	tree := &objects.Tree{ID: root}
	if err := r.objects.unfold(ctx, tree); err != nil {
		return nil, fmt.Errorf("read tree %s: %w", root, err)
	}
	return tree, nil
}

// Entry finds what a tree has at a path with '/' between names, without its size, and says whether there is something. It only reads the directories
// on the way.
func (r *Repository) Entry(ctx context.Context, tree objects.ID, path string) (e objects.Entry, is bool, err error) {
	at := &objects.Entry{Mode: objects.ModeTree, ID: tree}
	for name := range strings.SplitSeq(path, "/") {
		dir := directory(at)
		if dir == nil {
			return e, false, nil
		}
		if err := r.objects.readTrees(ctx, []*objects.Tree{dir}); err != nil {
			return e, false, fmt.Errorf("find %q in tree %s: %w", path, tree, err)
		}
		if at = dir.Child(name); at == nil {
			return e, false, nil
		}
	}
	return *at, true, nil
}

// unfold reads what is below a tree, one level of directories after the other: the process that runs already answers for a whole level at
// once, and a new one costs more than most trees. Directories that are equal are read once.
func (o *Objects) unfold(ctx context.Context, root *objects.Tree) error {
	seen := map[objects.ID]*objects.Tree{root.ID: root}
	level := []*objects.Tree{root}
	for len(level) > 0 {
		if err := o.readTrees(ctx, level); err != nil {
			return err
		}
		if err := o.measureBlobs(ctx, level); err != nil {
			return err
		}
		var below []*objects.Tree
		for _, tree := range level {
			for i := range tree.Entries {
				e := &tree.Entries[i]
				if e.Mode != objects.ModeTree {
					continue
				}
				if e.Tree = seen[e.ID]; e.Tree == nil {
					e.Tree = &objects.Tree{ID: e.ID}
					seen[e.ID] = e.Tree
					below = append(below, e.Tree)
				}
			}
		}
		level = below
	}
	return nil
}

// readTrees reads the entries of trees, of which only the IDs are known. It reads no subtree.
func (o *Objects) readTrees(ctx context.Context, trees []*objects.Tree) error {
	for part := range slices.Chunk(trees, readWindow) {
		var first error // of any number
		ids := make([]objects.ID, len(part))
		for i, tree := range part {
			ids[i] = tree.ID
		}
		err := o.ask(ctx, requestFor("contents", ids...), func(p *catFile) error {
			for _, tree := range part {
				entries, err := p.tree(tree.ID)
				if errors.Is(err, errBroken) {
					return err
				}
				if tree.Entries = entries; first == nil {
					first = err
				}
			}
			return nil
		})
		if err = errors.Join(err, first); err != nil {
			return err
		}
	}
	return nil
}

// tree reads an answer that must be a tree.
func (p *catFile) tree(id objects.ID) ([]objects.Entry, error) {
	kind, size, err := p.head(id)
	if errors.Is(err, ErrNoObject) {
		return nil, fmt.Errorf("%w: the tree %s is missing", ErrCorrupt, id)
	}
	if err != nil {
		return nil, err
	}
	if kind != objects.KindTree || size > maxKept {
		if _, err := io.CopyN(io.Discard, p.out, size); err != nil {
			return nil, errors.Join(fmt.Errorf("pass over object %s: %w", id, err), errBroken)
		}
		return nil, errors.Join(fmt.Errorf("%w: the object %s is a %s of %d bytes, and no tree that can be read", ErrCorrupt, id, kind, size), p.body(nil))
	}
	content := p.take(int(size))
	if err := p.body(content); err != nil {
		return nil, err
	}
	// Git does not check the name of what it reads here.
	if have := objects.Hash(objects.KindTree, content); have != id {
		return nil, fmt.Errorf("%w: the content of tree %s has the name %s", ErrCorrupt, id, have)
	}
	entries, err := objects.ParseTree(content)
	if err != nil {
		return nil, fmt.Errorf("%w: tree %s: %w", ErrCorrupt, id, err)
	}
	return entries, nil
}

// measureBlobs adds the sizes of files and links to the entries of trees.
func (o *Objects) measureBlobs(ctx context.Context, trees []*objects.Tree) error {
	var entries []*objects.Entry
	var ids []objects.ID
	measure := func() error {
		var first error // of any number
		err := o.StatAll(ctx, ids, func(i int, _ objects.Kind, size int64, err error) {
			if entries[i].Size = size; err != nil && first == nil {
				first = fmt.Errorf("%w: the content of %q: %s is missing", ErrCorrupt, entries[i].Name, ids[i])
			}
		})
		entries, ids = entries[:0], ids[:0]
		return errors.Join(err, first)
	}
	for _, tree := range trees {
		for i := range tree.Entries {
			e := &tree.Entries[i]
			if e.Kind() != objects.KindBlob {
				continue
			}
			if entries, ids = append(entries, e), append(ids, e.ID); len(ids) == readWindow {
				if err := measure(); err != nil {
					return err
				}
			}
		}
	}
	return measure()
}
