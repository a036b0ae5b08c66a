// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// assess has the assessor give a verdict on the work. It asks also if the tree has not changed: tasks that change nothing can be what is wrong.
func (x *acts) assess(ctx context.Context, o protocol.Orders, r review.Reviewer, v *journal.Reviewed) error {
	j := x.attempt.journal.State()
	from := cmp.Or(x.seen(ctx, j.Reviews[r.Name].Tree), j.Base.Tree)
	scene, err := x.scene(ctx, o, r, from, *v)
	if err != nil {
		return err
	}
	scene.Found = slices.DeleteFunc(slices.Clone(j.Reviewed), func(s protocol.ReviewStatus) bool { return s.Task != v.Task || s.Reviewer == r.Name })
	var verdict review.Verdict
	err = x.ask(ctx, scene, v, func(arguments json.RawMessage) (objection string) {
		verdict, objection = review.ReadVerdict(arguments)
		return objection
	})
	if err != nil {
		return err
	}
	v.Outcome, v.Directives, v.Discarded = review.Assess(r, verdict, x.quotable(ctx, v.Tree), j.Directives.Has)
	v.Summary = review.VerdictWords(r, verdict, v.Outcome)
	if v.Outcome == protocol.ReviewMajorDivergence {
		v.Diverged = verdict.Reason
	}
	return nil
}
