// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Verifier checks objects against their names, each once however many trees hold it. It is for one goroutine.
type Verifier struct {
	repository *Repository
	sound      map[objects.ID]struct{}
}

// NewVerifier checks objects of the repository, which is only read.
func (r *Repository) NewVerifier() *Verifier {
	return &Verifier{repository: r, sound: make(map[objects.ID]struct{})}
}

// Sound is the number of objects that were checked and are what their names say.
func (v *Verifier) Sound() int { return len(v.sound) }

// Commit reads a commit and checks it, but not its tree. ErrNoObject says that it is missing, ErrCorrupt that it is not
// what its name says.
func (v *Verifier) Commit(ctx context.Context, id objects.ID) (objects.Commit, error) {
	content, err := v.check(ctx, id, objects.KindCommit)
	if err != nil {
		return objects.Commit{}, fmt.Errorf("commit %s: %w", id, err)
	}
	c, err := objects.ParseCommit(content)
	if err != nil {
		return c, fmt.Errorf("commit %s: %w: %w", id, ErrCorrupt, err)
	}
	return c, nil
}

// Tree checks a tree with everything in it. It returns the errors of Commit, which name the path.
func (v *Verifier) Tree(ctx context.Context, id objects.ID) error { return v.tree(ctx, id, "") }

func (v *Verifier) tree(ctx context.Context, id objects.ID, path string) error {
	if _, known := v.sound[id]; known || id == objects.EmptyTree {
		return nil
	}
	content, err := v.check(ctx, id, objects.KindTree)
	if err != nil {
		return fmt.Errorf("tree %s of directory %s: %w", id, judge.Escape("/"+path), err)
	}
	entries, err := objects.ParseTree(content)
	if err != nil {
		return fmt.Errorf("tree %s of directory %s: %w: %w", id, judge.Escape("/"+path), ErrCorrupt, err)
	}
	// A tree counts as sound when everything in it is.
	delete(v.sound, id)
	for i := range entries {
		if err := v.entry(ctx, &entries[i], path); err != nil {
			return err
		}
	}
	v.sound[id] = struct{}{}
	return nil
}

func (v *Verifier) entry(ctx context.Context, e *objects.Entry, dir string) error {
	path := dir + e.Name
	switch e.Mode {
	case objects.ModeTree:
		return v.tree(ctx, e.ID, path+"/")
	case objects.ModeGitlink: // the commit is in another repository
		return nil
	}
	if _, known := v.sound[e.ID]; known {
		return nil
	}
	if _, err := v.check(ctx, e.ID, objects.KindBlob); err != nil {
		return fmt.Errorf("blob %s of file %s: %w", e.ID, judge.Escape(path), err)
	}
	return nil
}

// check reads an object and compares kind and content with its name. The content is returned, but not that of a blob,
// which may be larger than memory.
func (v *Verifier) check(ctx context.Context, id objects.ID, want objects.Kind) ([]byte, error) {
	var content []byte
	err := v.repository.objects.ask(ctx, requestFor("contents", id), func(p *catFile) error {
		kind, size, err := p.head(id)
		if err != nil {
			return err
		}
		hasher := objects.NewHash(kind, size)
		var to io.Writer = hasher
		var kept limited
		if kind != objects.KindBlob {
			kept.limit = maxKept
			to = io.MultiWriter(hasher, &kept)
		}
		if _, err := io.CopyN(to, p.out, size); err != nil {
			return errors.Join(fmt.Errorf("%w: it cannot be read to its end: %w", ErrCorrupt, err), errBroken)
		}
		if err := p.body(nil); err != nil {
			return err
		}
		content = kept.Bytes()
		switch have := objects.ID(hasher.Sum(nil)); {
		case have != id:
			return fmt.Errorf("%w: its content has the name %s", ErrCorrupt, have)
		case kind != want:
			return fmt.Errorf("%w: it is a %s, and should be a %s", ErrCorrupt, kind, want)
		}
		return nil
	})
	if err == nil {
		v.sound[id] = struct{}{}
	}
	return content, err
}

// maxKept bounds a tree or commit in bytes: a directory of a million names fits.
const maxKept = 64 << 20
