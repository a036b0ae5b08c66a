// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// write establishes documents of a reviewer's kinds that have proved themselves, decides which documents that it proposes count, and has the record of the review keep both.
func (x *acts) write(ctx context.Context, o protocol.Orders, r review.Reviewer, notes []knowledge.Note, v *journal.Reviewed) error {
	proved := x.attempt.journal.State().ProvedBeside(v.Directives)
	if !r.Writes(o.Policy) || len(notes) == 0 && len(proved) == 0 {
		return nil
	}
	if err := x.open(ctx); err != nil {
		return err
	}
	store, _ := x.store(ctx)
	by := knowledge.Author{Reviewer: r.Name, Kinds: r.Knows, Feature: o.Feature.Name, Task: v.Task}
	for _, d := range store.Establish(proved, by) {
		v.Established = append(v.Established, journal.Written{Path: d.Path, Text: d.Text()})
		store.Written = append(slices.DeleteFunc(store.Written, func(o knowledge.Document) bool { return o.Path == d.Path }), d)
	}
	changed, unconfirmed, refused := store.Write(notes, by)
	redactor := secrets.NewRedactor()
	for i := range changed {
		text := changed[i].Text()
		clean, err := redactor.Redact(ctx, secrets.Budget, []byte(text))
		if err != nil || !bytes.Equal(clean, []byte(text)) {
			refused = append(refused, knowledge.Secret)
			continue
		}
		v.Documents = append(v.Documents, journal.Written{Path: changed[i].Path, Text: text, Unconfirmed: slices.Contains(unconfirmed, changed[i].Path)})
	}
	for _, cause := range refused {
		v.Refused = append(v.Refused, string(cause))
	}
	return nil
}

// mended are failures that agents have corrected, of tasks that are done. The newest task comes first.
func (x *acts) mended(ctx context.Context, j journal.State) (all []review.Mended) {
	failures := slices.DeleteFunc(slices.Clone(j.Failures), func(f journal.Failure) bool { return !j.Tasks[f.Task].Done })
	slices.Reverse(failures)
	slices.SortStableFunc(failures, func(a, b journal.Failure) int {
		return cmp.Compare(j.Tasks[b.Task].Work.Checkpoint, j.Tasks[a.Task].Work.Checkpoint)
	})
	redactor := secrets.NewRedactor()
	for _, f := range failures {
		clean, err := redactor.Redact(ctx, secrets.Budget, []byte(f.Told))
		if err != nil {
			x.log().WarnContext(ctx, "Cannot search a message to an agent for secrets: reviewers do not see it", "task", f.Task, "error", err.Error())
			continue
		}
		all = append(all, review.Mended{Task: f.Task, Told: string(clean), Did: j.Tasks[f.Task].Work.Summary})
	}
	return all
}

// reasons of the newest plan that a model has made; empty if there are none.
func (x *acts) reasons(ctx context.Context, j journal.State) string {
	if j.Planned == nil || j.Planned.Reasons == "" {
		return ""
	}
	clean, err := secrets.NewRedactor().Redact(ctx, secrets.Budget, []byte(j.Planned.Reasons))
	if err != nil {
		x.log().WarnContext(ctx, "Cannot search the reasons of the plan for secrets: reviewers do not see them", "error", err.Error())
		return ""
	}
	return string(clean)
}
