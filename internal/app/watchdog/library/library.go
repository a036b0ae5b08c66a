// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package library reads the documents of the project's knowledge in a tree.
package library

import (
	"cmp"
	"context"
	"errors"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxFolder bounds a folder as a tree object, in bytes: more than a thousand names fit.
const maxFolder = 64 << 10

// Library is the knowledge of the project in a tree.
type Library struct {
	Base      string
	Documents []knowledge.Document
	// Files are all files in the folders of documents.
	Files []knowledge.File
	// Closed says why some are not known: a folder is too large or is a file; empty if all are.
	Closed string
	// Left are files that agents do not get.
	Left []knowledge.Answer
}

// Read the documents of a tree. It reads no folder, file or number of files that is larger than documents need.
func Read(ctx context.Context, repo *git.Repository, tree string) (Library, error) {
	l := Library{Base: tree}
	root, err := objects.ParseID(tree)
	if err != nil {
		return l, err
	}
	at, is, err := repo.Entry(ctx, root, knowledge.Dir)
	if err != nil || !is {
		return l, err
	}
	if at.Mode != objects.ModeTree {
		l.close(knowledge.NotFolder(knowledge.Dir))
		return l, nil
	}
	folders, err := l.folder(ctx, repo, at.ID, knowledge.Dir)
	if err != nil {
		return l, err
	}
	var files []knowledge.File
	blobs := map[string]objects.ID{}
	for _, kind := range knowledge.Kinds() {
		for _, f := range folders {
			if f.Name != string(kind) {
				continue
			}
			if f.Mode != objects.ModeTree {
				l.close(knowledge.NotFolder(knowledge.Dir + "/" + f.Name))
				continue
			}
			entries, err := l.folder(ctx, repo, f.ID, knowledge.Dir+"/"+f.Name)
			if err != nil {
				return l, err
			}
			for _, e := range entries {
				file := knowledge.File{Path: knowledge.Dir + "/" + f.Name + "/" + e.Name, Regular: e.Mode == objects.ModeFile || e.Mode == objects.ModeExecutable}
				files, blobs[file.Path] = append(files, file), e.ID
			}
		}
	}
	if err := measure(ctx, repo, files, blobs); err != nil {
		return l, err
	}
	l.Files = files
	picked, left := knowledge.Pick(files)
	l.Left = append(l.Left, left...)
	return l, l.parse(ctx, repo, picked, blobs)
}

// close says why files are not known. The first reason counts.
func (l *Library) close(why knowledge.Answer) {
	l.Left, l.Closed = append(l.Left, why), cmp.Or(l.Closed, why.String())
}

// folder lists a folder, unless it is too large: then it is left out.
func (l *Library) folder(ctx context.Context, repo *git.Repository, id objects.ID, path string) ([]objects.Entry, error) {
	entries, is, err := Entries(ctx, repo, id)
	if err == nil && !is {
		l.close(knowledge.TooMany(path))
	}
	return entries, err
}

// Entries lists a folder, unless it has more than maxFolder bytes.
func Entries(ctx context.Context, repo *git.Repository, id objects.ID) (entries []objects.Entry, is bool, err error) {
	all := repo.Objects()
	_, size, err := all.Stat(ctx, id)
	if err != nil || size > maxFolder {
		return nil, false, err
	}
	_, content, err := all.Read(ctx, id, maxFolder)
	if err != nil {
		return nil, false, err
	}
	entries, err = objects.ParseTree(content)
	return entries, err == nil, err
}

// measure gives regular files their sizes.
func measure(ctx context.Context, repo *git.Repository, files []knowledge.File, blobs map[string]objects.ID) error {
	var ids []objects.ID
	var at []int
	for i, f := range files {
		if f.Regular {
			ids, at = append(ids, blobs[f.Path]), append(at, i)
		}
	}
	var errs error
	return errors.Join(repo.Objects().StatAll(ctx, ids, func(i int, _ objects.Kind, size int64, err error) {
		files[at[i]].Size = size
		errs = errors.Join(errs, err)
	}), errs)
}

// parse reads files as documents.
func (l *Library) parse(ctx context.Context, repo *git.Repository, files []knowledge.File, blobs map[string]objects.ID) error {
	ids := make([]objects.ID, len(files))
	for i, f := range files {
		ids[i] = blobs[f.Path]
	}
	var errs error
	err := repo.Objects().ReadAll(ctx, ids, knowledge.MaxSize, func(i int, content []byte, err error) {
		if err != nil {
			errs = errors.Join(errs, err)
			return
		}
		d, err := knowledge.Parse(files[i].Path, content)
		if err != nil {
			l.Left = append(l.Left, knowledge.Answer{Path: files[i].Path, Reason: knowledge.Malformed, Why: err.Error()})
			return
		}
		l.Documents = append(l.Documents, d)
	})
	return errors.Join(err, errs)
}
