// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

const (
	// maxFolder bounds a folder of documents as a tree object, in bytes: more than a thousand names fit.
	maxFolder = 64 << 10
	// maxKnowledgeTold bounds how many documents the journal names with the beginning of a task, and maxKnowledgeLine what it says of each, in bytes.
	maxKnowledgeTold, maxKnowledgeLine = 32, 400
)

// library is the knowledge of the project at a base. It is read once.
type library struct {
	base      string
	documents []knowledge.Document
	// files are all files in the folders of documents. Closed: some are not known, because a folder is too large or is no folder.
	files  []knowledge.File
	closed bool
	// left are files that agents do not get.
	left []knowledge.Answer
}

// learn selects what an agent gets for a task of the knowledge of its project. It is a function of the base, the documents that reviewers have written, the task, its policy
// and its plan, so that it is the same after a crash. It is empty where the policy gives none.
func (x *acts) learn(ctx context.Context, o protocol.Orders, task string, p policy.Effective, plan protocol.Plan) (knowledge.Selection, error) {
	if !p.Knowledge.Inject || x.attempt.journal.State().Base == nil {
		return knowledge.Selection{}, nil
	}
	if err := x.open(ctx); err != nil {
		return knowledge.Selection{}, err
	}
	text := task + "\n" + o.Prompt
	if i := slices.IndexFunc(o.Tasks, func(t protocol.Task) bool { return t.Name == task }); i >= 0 {
		text += "\n" + o.Tasks[i].Instructions
	}
	store, left := x.store(ctx)
	unconfirmed := x.attempt.journal.State().Unconfirmed
	s := knowledge.Select(store.Confirmed(unconfirmed).Documents(), knowledge.Task{Text: text, Plan: plan}, instructions.KnowledgeRoom())
	s.Answers = append(append(s.Answers, x.library.left...), left...)
	for _, path := range unconfirmed {
		s.Answers = append(s.Answers, knowledge.Answer{Path: path, Reason: knowledge.Unconfirmed})
	}
	return s, nil
}

// store has the documents of the library, which is open, and those that reviewers have written. Left are written ones that do not keep to the format, as of a version with
// another one.
func (x *acts) store(ctx context.Context) (s knowledge.Store, left []knowledge.Answer) {
	s = knowledge.Store{Files: x.library.files, Closed: x.library.closed, Base: x.library.documents}
	written := x.attempt.journal.State().Written
	for _, path := range slices.Sorted(maps.Keys(written)) {
		d, err := knowledge.Parse(path, []byte(written[path]))
		if err != nil {
			x.log().WarnContext(ctx, "A document that a reviewer has written does not keep to the format: agents do not get it", "path", path, "reason", err.Error())
			left = append(left, knowledge.Answer{Path: path, Reason: knowledge.Malformed, Why: err.Error()})
			continue
		}
		s.Written = append(s.Written, d)
	}
	return s, left
}

// open reads the knowledge of the team at the base, once.
func (x *acts) open(ctx context.Context) error {
	base := x.attempt.journal.State().Base.Tree
	if x.library.base == base {
		return nil
	}
	read, err := x.read(ctx, base)
	if err != nil {
		return fmt.Errorf("read %s of the base: %w", knowledge.Dir, err)
	}
	if err := x.misfits(ctx, read.left); err != nil {
		return err
	}
	x.library = read
	return nil
}

// misfits reports the files that do not keep to the format, so that users can mend them.
func (x *acts) misfits(ctx context.Context, left []knowledge.Answer) error {
	if len(left) == 0 {
		return nil
	}
	var report protocol.KnowledgeReport
	for _, a := range left {
		x.log().WarnContext(ctx, "The agent does not get a document of the project's knowledge", "path", a.Path, "reason", a.Why)
		if len(report.LeftOut) == protocol.MaxKnowledgeLeftOut {
			break
		}
		report.LeftOut = append(report.LeftOut, plain.CutBytes(a.String(), protocol.MaxKnowledgeText))
	}
	report.More = len(left) - len(report.LeftOut)
	return x.attempt.reports.Knowledge(report)
}

// toldOf is what the journal has of a selection for users; nil if there is nothing to select from.
func toldOf(s knowledge.Selection) *journal.Knowledge {
	if len(s.Answers) == 0 {
		return nil
	}
	given, left := s.Told()
	k := &journal.Knowledge{Given: len(given), Left: len(left)}
	for _, list := range []struct {
		texts []string
		to    *[]string
	}{{given, &k.GivenPaths}, {left, &k.LeftOut}} {
		for _, text := range plain.CutList(list.texts, maxKnowledgeTold) {
			*list.to = append(*list.to, plain.CutBytes(text, maxKnowledgeLine))
		}
	}
	return k
}

// read the documents of a tree. It reads no folder, file or number of files that is larger than documents need.
func (x *acts) read(ctx context.Context, tree string) (library, error) {
	l := library{base: tree}
	root, err := objects.ParseID(tree)
	if err != nil {
		return l, err
	}
	at, is, err := x.services.repository.Entry(ctx, root, knowledge.Dir)
	if err != nil || !is || at.Mode != objects.ModeTree {
		l.closed = is
		return l, err
	}
	folders, err := x.folder(ctx, &l, at.ID, knowledge.Dir)
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
				l.closed = true
				continue
			}
			entries, err := x.folder(ctx, &l, f.ID, knowledge.Dir+"/"+f.Name)
			if err != nil {
				return l, err
			}
			for _, e := range entries {
				file := knowledge.File{Path: knowledge.Dir + "/" + f.Name + "/" + e.Name, Regular: e.Mode == objects.ModeFile || e.Mode == objects.ModeExecutable}
				files, blobs[file.Path] = append(files, file), e.ID
			}
		}
	}
	if err := x.measure(ctx, files, blobs); err != nil {
		return l, err
	}
	l.files = files
	picked, left := knowledge.Pick(files)
	l.left = append(l.left, left...)
	return l, x.parse(ctx, &l, picked, blobs)
}

// folder lists a folder, unless it is too large: then it is left out.
func (x *acts) folder(ctx context.Context, l *library, id objects.ID, path string) ([]objects.Entry, error) {
	entries, is, err := x.entries(ctx, id)
	if err == nil && !is {
		l.left, l.closed = append(l.left, knowledge.TooMany(path)), true
	}
	return entries, err
}

// entries lists a folder, unless it has more than maxFolder bytes.
func (x *acts) entries(ctx context.Context, id objects.ID) (entries []objects.Entry, is bool, err error) {
	all := x.services.repository.Objects()
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
func (x *acts) measure(ctx context.Context, files []knowledge.File, blobs map[string]objects.ID) error {
	var ids []objects.ID
	var at []int
	for i, f := range files {
		if f.Regular {
			ids, at = append(ids, blobs[f.Path]), append(at, i)
		}
	}
	var errs error
	return errors.Join(x.services.repository.Objects().StatAll(ctx, ids, func(i int, _ objects.Kind, size int64, err error) {
		files[at[i]].Size = size
		errs = errors.Join(errs, err)
	}), errs)
}

// parse reads files as documents.
func (x *acts) parse(ctx context.Context, l *library, files []knowledge.File, blobs map[string]objects.ID) error {
	ids := make([]objects.ID, len(files))
	for i, f := range files {
		ids[i] = blobs[f.Path]
	}
	var errs error
	err := x.services.repository.Objects().ReadAll(ctx, ids, knowledge.MaxSize, func(i int, content []byte, err error) {
		if err != nil {
			errs = errors.Join(errs, err)
			return
		}
		d, err := knowledge.Parse(files[i].Path, content)
		if err != nil {
			l.left = append(l.left, knowledge.Answer{Path: files[i].Path, Reason: knowledge.Malformed, Why: err.Error()})
			return
		}
		l.documents = append(l.documents, d)
	})
	return errors.Join(err, errs)
}
