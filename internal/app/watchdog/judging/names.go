// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judging

import (
	"context"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxTree bounds a tree object in bytes: a directory of a million names fits.
const maxTree = 64 << 20

// names lists directories of a tree for a check.
func (j *Judge) names(ctx context.Context, tree objects.ID) judge.Lookup {
	return func(dirs []string) map[string][]string {
		l := listing{children: map[string][]string{}, names: make(map[string][]string, len(dirs))}
		l.want(dirs)
		for level := []directory{{id: tree}}; len(level) > 0; {
			var err error
			if level, err = l.read(ctx, j, level); err != nil {
				j.log.ErrorContext(ctx, "Cannot list directories to check them", "error", err.Error())
				break
			}
		}
		return l.names
	}
}

// directory of a tree: its path, "" for the root, and its tree object.
type directory struct {
	path string
	id   objects.ID
}

// listing reads directories level by level: all of a level together.
type listing struct {
	// children are the wanted directories right below each directory.
	children map[string][]string
	names    map[string][]string
}

// want the directories and those on the way to them.
func (l *listing) want(dirs []string) {
	seen := make(map[string]bool, len(dirs))
	for _, dir := range dirs {
		for dir != "" && !seen[dir] {
			seen[dir] = true
			parent := dir[:max(strings.LastIndexByte(dir, '/'), 0)]
			l.children[parent] = append(l.children[parent], dir)
			dir = parent
		}
	}
}

// read the directories of one level, and find the next level's. One that cannot be read is left out, with all below it.
func (l *listing) read(ctx context.Context, j *Judge, level []directory) (next []directory, err error) {
	ids := make([]objects.ID, 0, len(level))
	for _, d := range level {
		ids = append(ids, d.id)
	}
	err = j.repo.Objects().ReadAll(ctx, ids, maxTree, func(i int, content []byte, err error) {
		if err != nil {
			return
		}
		entries, err := objects.ParseTree(content)
		if err != nil {
			return
		}
		path := level[i].path
		l.names[path] = make([]string, 0, len(entries))
		for _, e := range entries {
			l.names[path] = append(l.names[path], e.Name)
		}
		here := &objects.Tree{Entries: entries}
		for _, child := range l.children[path] {
			if e := here.Child(child[strings.LastIndexByte(child, '/')+1:]); e != nil && e.Kind() == objects.KindTree {
				next = append(next, directory{path: child, id: e.ID})
			} else {
				l.lack(child)
			}
		}
	})
	return next, err
}

// lack says that a directory does not exist, and so none below it.
func (l *listing) lack(dir string) {
	l.names[dir] = nil
	for _, child := range l.children[dir] {
		l.lack(child)
	}
}
