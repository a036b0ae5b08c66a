// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Bounds of a patch in addition to protocol.MaxPatchBytes. They are far above what a model writes in one answer, and far below
// what a watchdog of a few MiB would suffer from.
const (
	maxPatchFiles = 500
	maxPatchHunks = 5000
	// maxPatchedFile bounds a file before and after, in bytes.
	maxPatchedFile = 8 << 20
	// maxPatchedTotal bounds all files of one patch, before and after together, in bytes.
	maxPatchedTotal = 32 << 20
	// maxPatchPath is the longest path that Linux opens.
	maxPatchPath = 4095
)

// PatchError says why a patch is not applied, in words for its author. Nothing was changed.
type PatchError struct {
	// Path that it is about; empty if it is the whole patch. It comes from the patch: escape it before it is shown.
	Path string
	// Reason names the line or hunk and the error.
	Reason string
}

// Error is path and reason in one line.
func (e *PatchError) Error() string {
	if e.Path == "" {
		return "patch: " + e.Reason
	}
	return "patch of " + strconv.QuoteToASCII(e.Path) + ": " + e.Reason
}

// Patched is the result of applying a patch to a tree. Its objects are durable in the repository.
type Patched struct {
	Tree *objects.Tree
	// Changes that the patch makes, sorted by path.
	Changes []judge.Change
}

// ApplyPatch applies a unified patch in Git's format to a tree, in process: no work tree, no index, no git process. What the
// patch says of itself is never believed. Both go-gitdiff and the outline in this package read it. Apply then compares it with the trees
// before and after, path by path and line by line. If any two disagree, the error is a *PatchError.
func (r *Repository) ApplyPatch(ctx context.Context, over *objects.Tree, text string) (Patched, error) {
	pack := r.store.NewPack(nil)
	defer pack.Abort()
	p := patcher{
		over: over,
		read: func(id objects.ID) ([]byte, error) {
			_, content, err := r.objects.Read(ctx, id, maxPatchedFile)
			return content, err
		},
		write: pack.Add,
		fresh: map[objects.ID][]byte{},
	}
	tree, err := p.apply(text)
	if err != nil {
		return Patched{}, err
	}
	if err := pack.Commit(); err != nil {
		return Patched{}, fmt.Errorf("write patched tree: %w", err)
	}
	changes, err := r.Changes(ctx, over, tree)
	if err != nil {
		return Patched{}, fmt.Errorf("compare patched tree: %w", err)
	}
	return Patched{Tree: tree, Changes: changes}, nil
}

// patcher applies one patch to one tree. It knows no repository, so that it can be tried on millions of patches.
type patcher struct {
	over  *objects.Tree
	read  func(objects.ID) ([]byte, error)
	write func(objects.Kind, []byte) (objects.ID, error)
	// fresh are the blobs that this patch made, by id.
	fresh map[objects.ID][]byte
	// total bytes read and made so far.
	total int
}

// apply reads, applies and checks.
func (p *patcher) apply(text string) (*objects.Tree, error) {
	if len(text) > protocol.MaxPatchBytes {
		return nil, &PatchError{Reason: fmt.Sprintf("it has %d bytes, and the limit is %d: split it", len(text), protocol.MaxPatchBytes)}
	}
	claims, err := readPatch(text)
	if err != nil {
		return nil, err
	}
	if err := disjoint(claims); err != nil {
		return nil, err
	}
	var edits []objects.Edit
	for i := range claims {
		more, err := p.edit(&claims[i])
		if err != nil {
			return nil, err
		}
		edits = append(edits, more...)
	}
	tree, err := p.over.Apply(edits, func(id objects.ID, content []byte) error {
		_, err := p.write(objects.KindTree, content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write patched tree: %w", err)
	}
	return tree, p.check(claims, tree)
}

// disjoint refuses a patch that names a path twice: what it means would depend on the order. Only the source of copies
// may be named again.
func disjoint(claims []claim) error {
	var paths []string
	for _, c := range claims {
		paths = append(paths, c.touches()...)
	}
	slices.Sort(paths)
	for i := range paths[1:] {
		if paths[i] == paths[i+1] {
			return &PatchError{Path: paths[i], Reason: "the patch names it twice: write one section for each file"}
		}
	}
	return nil
}

// edit makes a claim's new content from the tree, and says what it changes there.
func (p *patcher) edit(c *claim) ([]objects.Edit, error) {
	var before []byte
	mode := c.newMode
	if c.old != "" {
		have, err := p.source(c)
		if err != nil {
			return nil, err
		}
		if before, err = p.content(c, have.ID); err != nil {
			return nil, err
		}
		if mode == 0 {
			mode = have.Mode
		}
	}
	var edits []objects.Edit
	if c.old != "" && !c.copied {
		edits = append(edits, objects.Edit{Path: c.old})
	}
	if c.new == "" {
		if after, err := c.result(before); err != nil || len(after) > 0 {
			return nil, c.refuse("it is deleted, but the patch does not remove all of its lines: list every line of it with '-'")
		}
		return edits, nil
	}
	if c.new != c.old && p.over.Lookup(c.new) != nil {
		return nil, c.refuse("it exists already: read it and change it instead")
	}
	after, err := c.result(before)
	if err != nil {
		return nil, err
	}
	if err := p.charge(c, len(after)); err != nil {
		return nil, err
	}
	id, err := p.write(objects.KindBlob, after)
	if err != nil {
		return nil, fmt.Errorf("write patched file: %w", err)
	}
	p.fresh[id] = after
	return append(edits, objects.Edit{Path: c.new, Entry: &objects.Entry{Mode: mode, ID: id, Size: int64(len(after))}}), nil
}

// source is the entry that a claim starts from.
func (p *patcher) source(c *claim) (*objects.Entry, error) {
	have := p.over.Lookup(c.old)
	switch {
	case have == nil:
		return nil, &PatchError{Path: c.old, Reason: "there is no such file. Paths begin with a/ and b/ and are relative to the root; a new file needs the line 'new file mode 100644'"}
	case have.Mode == objects.ModeTree:
		return nil, &PatchError{Path: c.old, Reason: "it is a directory: name files"}
	case have.Mode == objects.ModeGitlink:
		return nil, &PatchError{Path: c.old, Reason: "it is a submodule, which no patch may change"}
	case c.oldMode != 0 && c.oldMode != have.Mode:
		return nil, &PatchError{Path: c.old, Reason: fmt.Sprintf("the patch says that its mode is %o, and it is %o", c.oldMode, have.Mode)}
	}
	return have, nil
}

func (p *patcher) content(c *claim, id objects.ID) ([]byte, error) {
	content, fresh := p.fresh[id]
	if !fresh {
		var err error
		if content, err = p.read(id); err != nil {
			return nil, fmt.Errorf("read %s to patch it: %w", strconv.QuoteToASCII(c.old), err)
		}
	}
	return content, p.charge(c, len(content))
}

// charge bounds what one patch can make the watchdog hold.
func (p *patcher) charge(c *claim, size int) error {
	p.total += size
	if size > maxPatchedFile {
		return c.refuse(fmt.Sprintf("it has %d bytes, and files of more than %d cannot be patched", size, maxPatchedFile))
	}
	if p.total > maxPatchedTotal {
		return c.refuse(fmt.Sprintf("the files of the patch have more than %d bytes together: split it", maxPatchedTotal))
	}
	return nil
}
