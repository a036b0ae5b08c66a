// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
	"github.com/tidewaiter/tidewaiter/internal/host/tools"
)

// record journals an intent and acts on it.
func (w *workshop) record(ctx context.Context, i journal.Intent) error {
	if err := w.volume.guard(); err != nil {
		return err
	}
	if err := w.book.Note(journal.Record{Intent: &i}); err != nil {
		return err
	}
	if err := w.probe("intent journaled"); err != nil {
		return err
	}
	return w.act(ctx, i)
}

// recover acts on the intent that a crash left behind, if there is one.
func (w *workshop) recover(ctx context.Context) error {
	i := w.journal().Pending
	if i == nil {
		return nil
	}
	w.Log.InfoContext(ctx, "Completing a checkpoint that a crash interrupted", "checkpoint", i.Sequence)
	return w.act(ctx, *i)
}

// act does what an intent says. Every step may have been done before: it is looked for, and done if it is missing.
//
// The workspace goes first: what it cannot hold is not promoted, because no attempt could start from it.
func (w *workshop) act(ctx context.Context, i journal.Intent) error {
	started := w.Now()
	i, failure := w.settle(ctx, i)
	if i.Withheld == "" && failure != nil {
		return fmt.Errorf("restore after checkpoint %d: %w", i.Sequence, failure)
	}
	if err := w.probe("restored"); err != nil {
		return err
	}
	if err := w.moveRefs(ctx, i); err != nil {
		return fmt.Errorf("promote checkpoint %d: %w", i.Sequence, err)
	}
	if err := w.probe("refs moved"); err != nil {
		return err
	}
	w.logChanges(ctx, i)
	if err := w.probe("changes logged"); err != nil {
		return err
	}
	i.Report.ActTime = w.Now().Sub(started)
	w.checkPace(&i.Report)
	if err := w.announce(i); err != nil {
		return fmt.Errorf("report checkpoint %d: %w", i.Sequence, err)
	}
	if err := w.probe("spooled"); err != nil {
		return err
	}
	if err := w.book.Note(journal.Record{Done: &journal.Done{Sequence: i.Sequence}}); err != nil {
		return err
	}
	w.logCheckpoint(ctx, i.Report)
	if err := w.probe("done journaled"); err != nil || i.Operation != nil {
		return err
	}
	return failure
}

// moveRefs moves chain and delivery together by compare-and-swap, unless they are where they belong.
func (w *workshop) moveRefs(ctx context.Context, i journal.Intent) error {
	var updates []git.RefUpdate
	for _, r := range []struct{ name, old, new string }{
		{contract.RefChain, i.OldChain, i.Commit},
		{contract.RefDelivery, i.OldDelivery, i.Delivery},
	} {
		if r.old == r.new {
			continue
		}
		now, err := w.repo.Ref(ctx, r.name)
		if err != nil {
			return err
		}
		before, err := parseOptional(r.old)
		if err != nil {
			return err
		}
		after, err := objects.ParseID(r.new)
		if err != nil {
			return err
		}
		switch now {
		case after:
		case before:
			updates = append(updates, git.RefUpdate{Name: r.name, Old: before, New: after})
		default:
			return fmt.Errorf("%w: %s is %s, and the journal knows only %q and %q", errCorrupt, r.name, now, r.old, r.new)
		}
	}
	if len(updates) == 0 {
		return nil
	}
	return w.repo.UpdateRefs(ctx, updates)
}

// settle makes the workspace what the intent says. Where that fails the intent is withheld, and returned as it is to be
// acted on then; the error is why.
func (w *workshop) settle(ctx context.Context, i journal.Intent) (journal.Intent, error) {
	err := w.restore(ctx, i)
	if err == nil || fatal(err) || ctx.Err() != nil {
		return i, err
	}
	if i.Operation != nil {
		if undo := w.undo(ctx, i); undo != nil {
			return i, errors.Join(err, undo)
		}
	}
	w.Log.WarnContext(ctx, "The workspace cannot become what it should", "checkpoint", i.Sequence, "error", err.Error())
	held, noting := w.withheld(i, err)
	if noting == nil {
		noting = w.book.Note(journal.Record{Withheld: &held})
	}
	if noting == nil {
		noting = w.probe("withheld journaled")
	}
	if noting != nil {
		return i, errors.Join(err, noting)
	}
	return *w.journal().Pending, err
}

// undo takes back what was begun of a patch that the workspace cannot hold: its paths and no others, because a volume that
// is full has no room to write what is there already.
func (w *workshop) undo(ctx context.Context, i journal.Intent) error {
	before, err := objects.ParseID(w.journal().Workspace.Tree)
	if err != nil {
		return err
	}
	after, err := objects.ParseID(i.Restore)
	if err != nil {
		return err
	}
	touched, err := w.repo.Touched(ctx, before, after)
	if err != nil || len(touched) == 0 {
		return err
	}
	paths := make([]string, 0, len(touched))
	for _, t := range touched {
		paths = append(paths, t.Path)
	}
	if _, err := w.engine.Restore(ctx, before, paths...); err != nil {
		return fmt.Errorf("take the patch back: %w", err)
	}
	return nil
}

// withheld says why an intent is not acted on in full, and what those who asked for it are told.
func (w *workshop) withheld(i journal.Intent, cause error) (journal.Withheld, error) {
	reason := clip(oneLine(cause), maxReason)
	held := journal.Withheld{Sequence: i.Sequence, Reason: "the workspace could not be made what it should be: " + reason}
	for _, r := range i.Answers {
		r.OK = false
		r.Message = clip(fmt.Sprintf("the workspace could not go back, or not all of it: %s; its state before is checkpoint %s; remove the cause and ask again with a new id",
			reason, naming.Checkpoint(w.Feature, i.Sequence)), maxFault)
		held.Answers = append(held.Answers, r)
	}
	if i.Operation == nil {
		return held, nil
	}
	answer, err := json.Marshal(tools.PatchResult{OperationID: i.Operation.ID, Status: tools.Refused,
		Message: "nothing was changed. The workspace cannot hold the patched files: " + reason +
			". Use other names or smaller files, and send the patch with a new operation_id"})
	operation := *i.Operation
	operation.Answer = string(answer)
	held.Operation = &operation
	return held, err
}

// restore makes the workspace another tree, where the intent says so and there is a workspace.
func (w *workshop) restore(ctx context.Context, i journal.Intent) error {
	if i.Restore == "" || w.engine == nil {
		return nil
	}
	target, err := objects.ParseID(i.Restore)
	if err != nil {
		return err
	}
	paths := make([]string, 0, len(i.RestorePaths))
	for _, p := range i.RestorePaths {
		paths = append(paths, string(p))
	}
	done, err := w.engine.Restore(ctx, target, paths...)
	if err != nil {
		return err
	}
	w.tellCleared(ctx, done.Cleared)
	w.Log.InfoContext(ctx, "Workspace went back", "checkpoint", i.Sequence, "written", done.Written, "deleted", done.Deleted)
	return nil
}

// announce spools the record and the results of the requests that it answers.
func (w *workshop) announce(i journal.Intent) error {
	if _, err := w.spool.Append(contract.Report{Time: w.Now().UTC(), Checkpoint: &i.Report}); err != nil {
		return err
	}
	for _, r := range i.Answers {
		if err := w.answer(r); err != nil {
			return err
		}
	}
	return nil
}

// answer reports and remembers the result of a request, once.
func (a *attempt) answer(r contract.RequestReport) error {
	if _, known := a.journal().Requests[r.ID]; known {
		return nil
	}
	if _, err := a.spool.Append(contract.Report{Time: a.Now().UTC(), Request: &r}); err != nil {
		return err
	}
	return a.book.Note(journal.Record{Request: &r})
}

func (w *workshop) logCheckpoint(ctx context.Context, r contract.CheckpointReport) {
	w.Log.InfoContext(ctx, "Checkpoint", "checkpoint", r.Sequence, "trigger", r.Trigger, "verdict", r.Verdict,
		"action", r.Action, "settled", r.Settled, "violations", r.ViolationCount, "tree", r.Tree,
		"capture", r.CaptureTime.String(), "frozenFor", r.FrozenFor.String(), "judge", r.JudgeTime.String(), "act", r.ActTime.String())
}

// parseOptional parses an id that may be empty.
func parseOptional(text string) (objects.ID, error) {
	if text == "" {
		return objects.ID{}, nil
	}
	return objects.ParseID(text)
}
