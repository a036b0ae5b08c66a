// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/library"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

const (
	// maxNamed bounds the changed files by whose paths documents are found.
	maxNamed = 64
	// maxBeside bounds the folders of a folder that are looked into for a file of a new folder.
	maxBeside = 16
)

// known are the rules that the team has written down and that a reviewer holds the changes to, and how many documents there is no room for; none where the
// policy gives agents no knowledge.
func (x *acts) known(ctx context.Context, o protocol.Orders, r review.Reviewer, changes []review.Change) (rules []string, left int, err error) {
	if !r.Writes(o.Policy) {
		return nil, 0, nil
	}
	if err := x.open(ctx); err != nil {
		return nil, 0, err
	}
	store, _ := x.store(ctx)
	documents := slices.DeleteFunc(store.Documents(), func(d knowledge.Document) bool { return !slices.Contains(r.Knows, d.Kind) })
	task := knowledge.Task{Text: o.Prompt, Plan: protocol.Plan{Files: &protocol.FilePlan{}}}
	for _, c := range changes[:min(len(changes), maxNamed)] {
		task.Text += "\n" + c.Path
		if judge.ValidatePattern(c.Path) == nil {
			task.Plan.Files.Modify = append(task.Plan.Files.Modify, c.Path)
		}
	}
	selected := knowledge.Select(documents, task, review.MaxKnown)
	return selected.Rules(), selected.Left(), nil
}

// peers are files of the base that are like the changed ones.
func (x *acts) peers(ctx context.Context, base string, changes []review.Change) (peers []review.Peer, err error) {
	root, err := objects.ParseID(base)
	if err != nil {
		return nil, err
	}
	files, err := x.beside(ctx, root, review.Folders(changes))
	if err != nil {
		return nil, err
	}
	return x.texts(ctx, base, review.Peers(changes, files), review.MaxPeers, func(string, bool) bool { return true })
}

// texts are the first files of a list that are text and that count, without secrets, and no more than most. Counts gets the text, and whether secrets were
// taken out of it.
func (x *acts) texts(ctx context.Context, base string, files []string, most int, counts func(text string, secret bool) bool) (texts []review.Peer, err error) {
	redactor := secrets.NewRedactor()
	for _, file := range files {
		if len(texts) == most {
			break
		}
		content, err := x.file(ctx, base, file)
		if err != nil {
			return nil, err
		}
		if !isText(content) {
			continue
		}
		clean, err := redactor.Redact(ctx, secrets.Budget, content)
		if err != nil {
			x.log().WarnContext(ctx, "Cannot search a file of the base for secrets: reviewers do not see it", "path", file, "error", err.Error())
			continue
		}
		if counts(string(clean), !bytes.Equal(clean, content)) {
			texts = append(texts, review.Peer{Path: file, Text: string(clean)})
		}
	}
	return texts, nil
}

// establishes says whether a reviewer establishes at its next look, and does not compare.
func (x *acts) establishes(ctx context.Context, o protocol.Orders, r review.Reviewer) (bool, error) {
	if !r.Writes(o.Policy) {
		return false, nil
	}
	if err := x.open(ctx); err != nil {
		return false, err
	}
	store, _ := x.store(ctx)
	return r.Establishes(x.attempt.journal.State().Reviews[r.Name], store), nil
}

// baseline is what a reviewer sees of the base that establishes: typical files without secrets.
func (x *acts) baseline(ctx context.Context) (*review.Baseline, error) {
	base, _, err := x.services.workspace.Engine().Trees()
	if err != nil {
		return nil, err
	}
	b := review.Baseline{Survey: review.NewSurvey(func(yield func(string, int64) bool) {
		base.Walk(func(path string, e *objects.Entry) bool {
			size := e.Size
			if e.Mode != objects.ModeFile && e.Mode != objects.ModeExecutable {
				size = 0 // it counts, and has no text
			}
			return yield(path, size)
		})
	})}
	b.Texts, err = x.texts(ctx, base.ID.String(), b.Typical, review.MaxTypical, func(text string, secret bool) bool { return !secret && review.Typical(text) })
	return &b, err
}

// beside lists the files in folders of a tree. In place of a folder that is new, it takes the nearest one above and the first folders in that.
func (x *acts) beside(ctx context.Context, root objects.ID, folders []string) (files []review.Listed, err error) {
	var ids []objects.ID
	listed := map[string]bool{}
	list := func(folder string, id objects.ID) (below []objects.Entry, err error) {
		entries, is, err := library.Entries(ctx, x.services.repository, id)
		if err != nil || !is {
			return nil, err
		}
		for _, e := range entries {
			switch {
			case e.Mode == objects.ModeTree:
				below = append(below, e)
			case e.Mode == objects.ModeFile && !listed[folder] && len(files) < review.MaxListed:
				files, ids = append(files, review.Listed{Path: path.Join(folder, e.Name)}), append(ids, e.ID)
			}
		}
		listed[folder] = true
		return below, nil
	}
	for _, folder := range folders {
		at, id, err := x.nearest(ctx, root, folder)
		if err != nil {
			return nil, err
		}
		if at == folder && listed[at] {
			continue
		}
		below, err := list(at, id)
		if err != nil {
			return nil, err
		}
		if at == folder {
			continue
		}
		for _, e := range below[:min(len(below), maxBeside)] {
			if _, err := list(path.Join(at, e.Name), e.ID); err != nil {
				return nil, err
			}
		}
	}
	var errs error
	err = x.services.repository.Objects().StatAll(ctx, ids, func(i int, _ objects.Kind, size int64, err error) {
		files[i].Size = size
		errs = errors.Join(errs, err)
	})
	return files, errors.Join(err, errs)
}

// nearest is a folder of a tree, or the nearest one above it that the tree has. It goes down from the root: the other way, it would read each folder on the
// way once for each one below that is new, and an agent chooses how deep these are.
func (x *acts) nearest(ctx context.Context, root objects.ID, folder string) (at string, id objects.ID, err error) {
	at, id = ".", root
	if folder == at {
		return at, id, nil
	}
	for name := range strings.SplitSeq(folder, "/") {
		e, is, err := x.services.repository.Entry(ctx, id, name)
		if err != nil {
			return "", root, err
		}
		if !is || e.Mode != objects.ModeTree {
			break
		}
		at, id = path.Join(at, name), e.ID
	}
	return at, id, nil
}
