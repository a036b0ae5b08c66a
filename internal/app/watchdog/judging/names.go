// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judging

import (
	"context"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// maxTree bounds a tree object in bytes: a directory of a million names fits.
const maxTree = 64 << 20

// listing reads the directories of one tree that a judgement asks about, and no others.
type listing struct {
	ctx  context.Context //nolint:containedctx // lives as long as one judgement
	repo *git.Repository
	dirs map[string][]objects.Entry
}

// names lists the directories of a tree for a judgement.
func names(ctx context.Context, repo *git.Repository, tree objects.ID) judge.Lookup {
	l := &listing{ctx: ctx, repo: repo, dirs: map[string][]objects.Entry{}}
	root, err := l.read(tree)
	if err != nil {
		return nil
	}
	l.dirs[""] = root
	return func(dir string) ([]string, bool) {
		entries, err := l.entries(dir)
		if err != nil {
			return nil, false
		}
		list := make([]string, 0, len(entries))
		for _, e := range entries {
			list = append(list, e.Name)
		}
		return list, true
	}
}

// entries of a directory; none where it does not exist.
func (l *listing) entries(dir string) ([]objects.Entry, error) {
	if have, ok := l.dirs[dir]; ok {
		return have, nil
	}
	parent, name := "", dir
	if i := strings.LastIndexByte(dir, '/'); i >= 0 {
		parent, name = dir[:i], dir[i+1:]
	}
	above, err := l.entries(parent)
	if err != nil {
		return nil, err
	}
	var found []objects.Entry
	for i := range above {
		if above[i].Name == name && above[i].Kind() == objects.KindTree {
			if found, err = l.read(above[i].ID); err != nil {
				return nil, err
			}
		}
	}
	l.dirs[dir] = found
	return found, nil
}

func (l *listing) read(id objects.ID) ([]objects.Entry, error) {
	_, content, err := l.repo.Objects().Read(l.ctx, id, maxTree)
	if err != nil {
		return nil, err
	}
	return objects.ParseTree(content)
}
