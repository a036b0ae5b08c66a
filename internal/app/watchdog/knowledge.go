// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/library"
	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxKnowledgeTold bounds how many documents the journal names with the beginning of a task, and maxKnowledgeLine what it says of each, in bytes.
	maxKnowledgeTold, maxKnowledgeLine = 32, 400
)

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
	s := knowledge.Select(store.Confirmed().Documents(), knowledge.Task{Text: text, Plan: plan}, instructions.KnowledgeRoom())
	s.Answers = append(append(s.Answers, x.library.Left...), left...)
	for _, path := range store.Unconfirmed {
		s.Answers = append(s.Answers, knowledge.Answer{Path: path, Reason: knowledge.Unconfirmed})
	}
	return s, nil
}

// store has the documents of the library, which is open, and those that reviewers have written. Left are written ones that do not keep to the format, as of a version with
// another one.
func (x *acts) store(ctx context.Context) (s knowledge.Store, left []knowledge.Answer) {
	j := x.attempt.journal.State()
	s = knowledge.Store{Files: x.library.Files, Closed: x.library.Closed, Base: knowledge.Adopt(x.library.Documents), Unconfirmed: j.Unconfirmed}
	written := j.Written
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
	if x.library.Base == base {
		return nil
	}
	read, err := library.Read(ctx, x.services.repository, base)
	if err != nil {
		return fmt.Errorf("read %s of the base: %w", knowledge.Dir, err)
	}
	if err := x.misfits(ctx, read.Left); err != nil {
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
