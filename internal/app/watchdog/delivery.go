// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// review judges what is to be delivered under the policy in effect now: base…head, and base…each commit of its history.
func (r *run) review(o contract.Orders) work {
	return func(ctx context.Context) (supervise.Event, error) {
		e, err := r.reviewed(ctx, o)
		switch {
		case fatal(err):
			return nil, err
		case ctx.Err() != nil:
			return supervise.Aborted{}, nil //nolint:nilerr // an act that was called off is an event, not an error
		case err != nil:
			return supervise.Undelivered{Fault: faultOf(err, contract.ReasonCheckpointFailed)}, nil
		}
		return e, nil
	}
}

func (r *run) reviewed(ctx context.Context, o contract.Orders) (supervise.Reviewed, error) {
	e := supervise.Reviewed{PolicyHash: o.Policy.Hash}
	if err := r.replace(ctx); err != nil { // a review before this one may have come so far
		return e, err
	}
	j, err := r.judgeHead(ctx, o)
	if err != nil {
		return e, err
	}
	r.Log.InfoContext(ctx, "Reviewed before delivery", "verdict", j.Verdict, "policy", o.Policy.Hash, "violations", len(j.Violations))
	switch {
	case o.Policy.Enforcement == policy.Audit: // everything is judged, nothing is held
		return e, nil
	case j.Verdict != judge.Valid:
		e.Objection = judge.Summary(j)
		return e, nil
	}
	why, err := r.judgeHistory(ctx, o)
	switch {
	case err != nil || why == "":
		return e, err
	case o.Policy.History == policy.HistoryHold:
		e.Reason, e.Objection = contract.ReasonHistoryInvalid, clip(why+" (delivery.history is Hold)", maxFault)
		return e, nil
	}
	e.Squashed = why
	e.Head, err = r.squash(ctx, o, why)
	return e, err
}

func (r *run) judgeHead(ctx context.Context, o contract.Orders) (judge.Judgement, error) {
	head, err := objects.ParseID(r.journal().Promoted.Tree)
	if err != nil {
		return judge.Judgement{}, err
	}
	return r.judgeTree(ctx, head, occasion{plan: o.Plan, policy: o.Policy, orders: o}, surroundings{})
}

// surroundings are what is judged beside a tree.
type surroundings struct {
	list      []judge.Found
	workspace judge.Workspace
}

// judgeTree judges a tree that is not, or not yet, that of the workspace.
func (w *workshop) judgeTree(ctx context.Context, tree objects.ID, o occasion, beside surroundings) (judge.Judgement, error) {
	base, err := objects.ParseID(w.journal().Base.Tree)
	if err != nil {
		return judge.Judgement{}, err
	}
	changes, err := w.repo.Diff(ctx, base, tree)
	if err != nil {
		return judge.Judgement{}, fmt.Errorf("compare base and %s: %w", tree, err)
	}
	in := w.evidence(ctx, tree, changes, o)
	in.Found, in.Workspace, in.Memory = beside.list, beside.workspace, w.memory.Beside()
	return judge.Judge(ctx, in)
}

// push delivers the head; never by force. It may have been done before.
func (r *run) push(o contract.Orders) work {
	return func(ctx context.Context) (supervise.Event, error) {
		head := r.journal().Promoted.Commit
		err := r.pushHead(ctx, o, head)
		switch {
		case err == nil: // called off too late, perhaps: what is done is told
			r.Log.InfoContext(ctx, "Pushed", "branch", o.Delivery.Branch, "commit", head)
			return supervise.Pushed{Commit: head}, nil
		case fatal(err):
			return nil, err
		case ctx.Err() != nil:
			return supervise.Aborted{}, nil //nolint:nilerr // an act that was called off is an event, not an error
		case errors.Is(err, git.ErrConflict):
			r.Log.WarnContext(ctx, "The branch is taken", "branch", o.Delivery.Branch, "error", err.Error())
			return supervise.Refused{Fault: contract.Fault{Reason: contract.ReasonPushConflict,
				Message: clip(err.Error()+"; the work is kept as commit "+head, maxFault)}}, nil
		}
		r.Log.WarnContext(ctx, "Push failed", "branch", o.Delivery.Branch, "error", err.Error())
		return supervise.Undelivered{Fault: faultOf(err, contract.ReasonPushFailed)}, nil
	}
}

func (r *run) pushHead(ctx context.Context, o contract.Orders, head string) error {
	if err := r.volume.guard(); err != nil {
		return err
	}
	commit, err := objects.ParseID(head)
	if err != nil {
		return err
	}
	remote, err := r.remote(o.Repository)
	if err != nil {
		return err
	}
	if err := r.repo.Push(ctx, remote, commit, o.Delivery.Branch); err != nil {
		return err
	}
	if err := r.probe("pushed"); err != nil {
		return err
	}
	if err := r.book.Note(journal.Record{Delivered: &journal.Delivered{Commit: head, Branch: o.Delivery.Branch}}); err != nil {
		return err
	}
	return r.probe("delivery journaled")
}
