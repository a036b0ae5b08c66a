// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// recorder journals what a checkpoint is about to do, and does it.
type recorder struct {
	Options
	events fileEvents
	// slow counts checkpoints in a row that took too long.
	slow int64
}

// record journals an intent and acts on it.
func (r *recorder) record(ctx context.Context, i journal.Intent) error {
	if err := r.Guard(); err != nil {
		return err
	}
	if err := r.Journal.Note(journal.Record{Intent: &i}); err != nil {
		return err
	}
	if err := r.Probe.After("intent journaled"); err != nil {
		return err
	}
	return r.act(ctx, i)
}

// recover acts on the intent that a crash left behind, if there is one.
func (r *recorder) recover(ctx context.Context) error {
	i := r.Journal.State().Pending
	if i == nil {
		return nil
	}
	r.Log.InfoContext(ctx, "Completing a checkpoint that a crash interrupted", "checkpoint", i.Sequence)
	return r.act(ctx, *i)
}

// act does what an intent says. Every step may have been done before: it is looked for, and done if it is missing.
//
// The workspace goes first: what it cannot hold is not promoted, because no attempt could start from it.
func (r *recorder) act(ctx context.Context, i journal.Intent) error {
	started := r.Now()
	i, failure := r.settle(ctx, i)
	if i.Withheld == "" && failure != nil {
		return fmt.Errorf("restore after checkpoint %d: %w", i.Sequence, failure)
	}
	if err := r.Probe.After("restored"); err != nil {
		return err
	}
	if err := r.moveRefs(ctx, i); err != nil {
		return fmt.Errorf("promote checkpoint %d: %w", i.Sequence, err)
	}
	if err := r.Probe.After("refs moved"); err != nil {
		return err
	}
	r.logChanges(ctx, i)
	if err := ctx.Err(); err != nil { // the events may be missing; when the intent is read again they are logged
		return err
	}
	if err := r.Probe.After("changes logged"); err != nil {
		return err
	}
	i.Report.ActTime = r.Now().Sub(started)
	r.checkPace(&i.Report)
	if err := r.announce(i); err != nil {
		return fmt.Errorf("report checkpoint %d: %w", i.Sequence, err)
	}
	if err := r.Probe.After("spooled"); err != nil {
		return err
	}
	if err := r.Journal.Note(journal.Record{Done: &journal.Done{Sequence: i.Sequence}}); err != nil {
		return err
	}
	if e := r.Workspace.Engine(); e != nil {
		e.Recorded()
	}
	if r.Taken != nil {
		r.Taken(i)
	}
	r.logCheckpoint(ctx, i.Report)
	if err := r.Probe.After("done journaled"); err != nil || i.Operation != nil {
		return err
	}
	return failure
}

// moveRefs moves chain and delivery together, unless they are where they belong.
func (r *recorder) moveRefs(ctx context.Context, i journal.Intent) error {
	return trusted.MoveRefs(ctx, r.Repository, trusted.Move{Name: protocol.RefChain, Old: i.OldChain, New: i.Commit},
		trusted.Move{Name: protocol.RefDelivery, Old: i.OldDelivery, New: i.Delivery})
}

// settle makes the workspace what the intent says. If that fails, the intent is withheld, and settle returns the intent to carry out
// instead; the error is why.
func (r *recorder) settle(ctx context.Context, i journal.Intent) (journal.Intent, error) {
	err := r.restore(ctx, i)
	if err == nil || steps.Fatal(err) || ctx.Err() != nil {
		return i, err
	}
	if i.Operation != nil {
		if undo := r.undo(ctx, i); undo != nil {
			return i, errors.Join(err, undo)
		}
	}
	r.Log.WarnContext(ctx, "Cannot restore the workspace", "checkpoint", i.Sequence, "error", err.Error())
	held, noting := r.withheld(i, err)
	if noting == nil {
		noting = r.Journal.Note(journal.Record{Withheld: &held})
	}
	if noting == nil {
		noting = r.Probe.After("withheld journaled")
	}
	if noting != nil {
		return i, errors.Join(err, noting)
	}
	return *r.Journal.State().Pending, err
}

// undo takes back a begun patch that the workspace cannot hold: its paths and no others, because a volume that
// is full has no room to write what is there already.
func (r *recorder) undo(ctx context.Context, i journal.Intent) error {
	before, err := objects.ParseID(r.Journal.State().Workspace.Tree)
	if err != nil {
		return err
	}
	after, err := objects.ParseID(i.Restore)
	if err != nil {
		return err
	}
	changes, err := r.Repository.Diff(ctx, before, after)
	if err != nil || len(changes) == 0 {
		return err
	}
	paths := make([]string, 0, len(changes))
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	if _, err := r.Workspace.Restore(ctx, before, paths...); err != nil {
		return fmt.Errorf("take the patch back: %w", err)
	}
	return nil
}

// withheld says why an intent is not acted on in full, and the answer to its requests.
func (r *recorder) withheld(i journal.Intent, cause error) (journal.Withheld, error) {
	reason := plain.CutBytes(faults.OneLine(cause), maxReason)
	held := journal.Withheld{Sequence: i.Sequence, Reason: "the watchdog could not make the workspace what it should be: " + reason}
	for _, a := range i.Answers {
		a.OK = false
		a.Message = plain.CutBytes(fmt.Sprintf("the workspace could not go back, or not all of it: %s. Its state before is checkpoint %s: remove the cause and ask again with a new id",
			reason, naming.Checkpoint(r.Feature, i.Sequence)), faults.MaxMessage)
		held.Answers = append(held.Answers, a)
	}
	if i.Operation == nil {
		return held, nil
	}
	answer, err := json.Marshal(tools.PatchResult{OperationID: i.Operation.ID, Status: tools.Refused,
		Message: "the patch changed nothing. The workspace cannot hold the patched files: " + reason +
			". Use other names or smaller files, and send the patch with a new operation_id"})
	operation := *i.Operation
	operation.Answer = string(answer)
	held.Operation = &operation
	return held, err
}

// restore makes the workspace another tree, where the intent says so and there is a workspace.
func (r *recorder) restore(ctx context.Context, i journal.Intent) error {
	if i.Restore == "" || r.Workspace.Engine() == nil {
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
	done, err := r.Workspace.Restore(ctx, target, paths...)
	if err != nil {
		return err
	}
	r.Log.InfoContext(ctx, "Workspace restored", "checkpoint", i.Sequence, "written", done.Written, "deleted", done.Deleted)
	return nil
}

// announce spools the record and the results of the requests that it answers.
func (r *recorder) announce(i journal.Intent) error {
	if err := r.Reports.Checkpoint(i.Report); err != nil {
		return err
	}
	for _, a := range i.Answers {
		if err := r.Reports.Answer(a); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) logCheckpoint(ctx context.Context, c protocol.CheckpointReport) {
	r.Log.InfoContext(ctx, "Checkpoint", "checkpoint", c.Sequence, "trigger", c.Trigger, "verdict", c.Verdict,
		"action", c.Action, "settled", c.Settled, "violations", c.ViolationCount, "tree", c.Tree,
		"capture", c.CaptureTime.String(), "frozenFor", c.FrozenFor.String(), "judge", c.JudgeTime.String(), "act", c.ActTime.String())
}

// checkPace counts slow checkpoints in a row.
func (r *recorder) checkPace(c *protocol.CheckpointReport) {
	if c.CaptureTime+c.SyncTime+c.JudgeTime+c.ActTime <= protocol.SlowCheckpoint {
		r.slow = 0
		return
	}
	r.slow++
	c.Vitals.SlowInARow = r.slow
}
