// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// ClearIgnored removes what the base's rules ignore and the agent's own repository, and tests the volume again. It is for a full volume,
// before the workspace is prepared. It returns how many names it removed.
func (e *Engine) ClearIgnored(ctx context.Context) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, err := e.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer c.pack.Abort()
	c.grant = true
	s := c.scanner()
	known, err := s.scan(c.known, e.base)
	if err != nil {
		return 0, fmt.Errorf("scan workspace: %w", err)
	}
	if !s.partial {
		c.known = known
	}
	n, err := c.clearIgnored()
	if err == nil {
		n++
		err = remove(e.root, gitDir)
	}
	if err != nil {
		return n, fmt.Errorf("clear workspace: %w", err)
	}
	e.assumptions, err = probe(ctx, e.root)
	return n, err
}

// clearIgnored removes every name that is known to be ignored.
func (c *capture) clearIgnored() (int, error) {
	var paths []string
	c.known.marked("", ignored, func(path string, n *node) {
		if n.sub == nil {
			paths = append(paths, path)
		}
	})
	l := ladder{root: c.engine.root, open: openGranted}
	defer l.close()
	for i, path := range paths {
		if c.ctx.Err() != nil {
			return i, context.Cause(c.ctx)
		}
		d, name, err := l.to(path)
		if vanished(err) {
			continue
		}
		if err == nil {
			err = remove(d, name)
		}
		if err != nil {
			return i, err
		}
		c.known = c.known.set(c.owner, path, nil)
	}
	return len(paths), nil
}

// sweepBatch is how many names git checks at once.
const sweepBatch = 1024

// sweep removes what the target does not have without keeping a list of it, for a workspace that holds more than is looked
// at: in memory that does not depend on how much there is, and in time that is proportional to it.
func (r *restorer) sweep(keepIgnored bool) error {
	d, err := r.capture.engine.root.sub(".")
	if err != nil {
		return err
	}
	defer d.close()
	return r.sweepDir(d, "", r.target, keepIgnored, make([]byte, direntBuffer))
}

func (r *restorer) sweepDir(d dir, prefix string, target *objects.Tree, keepIgnored bool, buffer []byte) error {
	var batch []git.Candidate
	err := d.names(buffer, func(name []byte) error {
		if prefix == "" && string(name) == gitDir || target.Child(string(name)) != nil {
			return nil
		}
		sig, _, err := statName(d, &name[0])
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		batch = append(batch, git.Candidate{Path: prefix + string(name), Dir: sig.isDir()})
		if len(batch) < sweepBatch {
			return nil
		}
		err = r.sweepNames(d, prefix, batch, keepIgnored)
		batch = batch[:0]
		return err
	})
	err = errors.Join(err, r.sweepNames(d, prefix, batch, keepIgnored))
	if err != nil || target == nil {
		return err
	}
	for i := range target.Entries {
		e := &target.Entries[i]
		if e.Mode != objects.ModeTree {
			continue
		}
		sub, err := openGranted(d, e.Name)
		if vanished(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = r.sweepDir(sub, prefix+e.Name+"/", e.Tree, keepIgnored, buffer)
		sub.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) sweepNames(d dir, prefix string, names []git.Candidate, keepIgnored bool) error {
	c := r.capture
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	stays := make([]bool, len(names))
	if keepIgnored && len(names) > 0 {
		var err error
		if stays, err = c.engine.ignore.Match(c.ctx, slices.Clone(names)); err != nil {
			return err
		}
	}
	for i, n := range names {
		if stays[i] {
			continue
		}
		if err := remove(d, strings.TrimPrefix(n.Path, prefix)); err != nil {
			return err
		}
		r.deleted++
		if !keepIgnored {
			r.cleared++
		}
	}
	return nil
}
