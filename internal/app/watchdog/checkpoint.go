// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
	"github.com/tidewaiter/tidewaiter/internal/host/workspace"
)

// occasion is what a checkpoint is taken for.
type occasion struct {
	trigger string
	// task that was worked on, and how its process ended when the checkpoint closes it.
	task     string
	closes   bool
	ending   supervise.Ending
	requests []string
	// policy and plan that it is held to.
	policy policy.Effective
	plan   judge.Plan
	orders contract.Orders
	// freezer of the agent; nil when nothing of it runs.
	freezer *freezer
	// atOnce: freeze before anything is read. hold: so, and stay frozen.
	atOnce, hold bool
	// doubt is why the workspace is not to be trusted although it is quiet; it makes the checkpoint unsettled.
	doubt string
}

// judged is a captured and judged workspace.
type judged struct {
	snapshot    workspace.Snapshot
	judgement   judge.Judgement
	consequence supervise.Consequence
	judgeTime   time.Duration
	// back is what the workspace goes back to; nil when it stays.
	back *restoration
	// changed counts the paths that the watcher had told of before.
	changed int
}

// taken is what came of a checkpoint.
type taken struct {
	judged
	// intent that was acted on; nil when there was nothing new to record.
	intent *journal.Intent
}

// checkpoint captures, judges, records and acts. An error means that nothing was recorded, or that the intent is in the
// journal and is acted on when it is read again.
func (w *workshop) checkpoint(ctx context.Context, o occasion) (taken, error) {
	t, err := w.capture(ctx, o)
	if err != nil {
		return t, err
	}
	t.intent, err = w.plan(ctx, o, t.judged)
	if err == nil && t.intent != nil {
		err = w.record(ctx, *t.intent)
	}
	if o.frozen() && !o.hold && !fatal(err) {
		// What was taken back is taken back, whether the freeze was perfect or not.
		if err := o.freezer.Thaw(ctx); err != nil {
			w.Log.WarnContext(ctx, "Thawing after a restore", "error", err.Error())
		}
	}
	return t, err
}

// capture looks at the workspace. The agent is frozen afterwards only where something is to be taken back, or the pod
// is about to end.
func (w *workshop) capture(ctx context.Context, o occasion) (taken, error) {
	j, err := w.look(ctx, o)
	if o.frozen() && !o.hold && (err != nil || j.consequence.Restore == supervise.RestoreNothing) {
		if thawing := o.freezer.Thaw(ctx); err == nil {
			err = thawing
		}
	}
	if err == nil {
		err = w.probe("captured")
	}
	return taken{judged: j}, err
}

// frozen: the agent was frozen for this and has not been thawed.
func (o occasion) frozen() bool { return o.freezer != nil && o.freezer.held }

// movingTries is how often a workspace is captured again in which a path moved, before the checkpoint counts as failed.
const movingTries = 2

// moves says that a path of the workspace moved while it was captured: most likely it rests a moment later. A freeze that
// failed would only fail again, after its whole timeout, and a pod that has to end has no time.
func (o occasion) moves(j judged) bool {
	return !j.snapshot.Settled && o.doubt == "" && !o.hold && (o.freezer == nil || o.freezer.flaw == nil && o.freezer.still)
}

// keepsFrozen: a restore may follow, or the pod is about to end.
func (o occasion) keepsFrozen() bool {
	e := o.policy.Execution
	return o.freezer != nil && (o.hold || e.Strategy == policy.StrategyShadow || e.RevertOnViolation != policy.RevertNone)
}

// look captures and judges. What is to be taken back has to be captured with the agent held still, so that nothing it
// writes between capture and restore is lost: where the first look went without a freeze, there is a second one.
func (w *workshop) look(ctx context.Context, o occasion) (judged, error) {
	j, err := w.glance(ctx, o, o.hold || o.atOnce)
	for tries := 0; err == nil && tries < movingTries && o.moves(j); tries++ {
		if o.frozen() {
			if err := o.freezer.Thaw(ctx); err != nil {
				break
			}
		}
		j, err = w.glance(ctx, o, o.hold || o.atOnce)
	}
	if err != nil || j.consequence.Restore == supervise.RestoreNothing || o.freezer == nil || o.frozen() {
		return j, err
	}
	return w.glance(ctx, o, true)
}

func (w *workshop) glance(ctx context.Context, o occasion, atOnce bool) (judged, error) {
	still := workspace.Still{AtOnce: atOnce, KeepFrozen: o.keepsFrozen(), Limits: limitsOf(o.policy.Changes)}
	if o.freezer != nil {
		still.Freezer = o.freezer
	}
	changed := w.engine.Changed()
	s, err := w.engine.Capture(ctx, still)
	if err != nil {
		return judged{}, fmt.Errorf("capture the workspace: %w", err)
	}
	switch {
	case o.doubt != "":
		s.Settled, s.Reason = false, o.doubt
	case o.freezer != nil && s.Frozen && o.freezer.flaw != nil:
		s.Settled, s.Reason = false, o.freezer.flaw.Error()
	}
	started := w.Now()
	judgement, err := w.judge(ctx, s, o)
	if err != nil {
		return judged{}, err
	}
	j := judged{snapshot: s, judgement: judgement}
	j.judgeTime, j.changed = w.Now().Sub(started), changed
	w.checkJudge(j.judgeTime)
	j.consequence = supervise.Act(j.judgement, o.policy, s.Settled)
	if s.Incomplete && j.consequence.Promote {
		// Not even an audit promotes what was never read.
		j.consequence = supervise.Consequence{Action: contract.ActionHeld}
	}
	return j, nil
}

// limitsOf a policy, for what a capture may read and store.
func limitsOf(c policy.Changes) workspace.Limits {
	return workspace.Limits{MaxFileSize: c.MaxFileSize, MaxBytes: c.MaxWorkspaceSize, MaxFiles: c.MaxWorkspaceFiles}
}

// checkJudge tells of a judgement that took long.
func (w *workshop) checkJudge(took time.Duration) {
	problem := ""
	if took > slowJudging {
		problem = fmt.Sprintf("judging the last checkpoint took more than %s; every path was judged all the same", slowJudging)
	}
	w.health.tell(judgeHealth, problem)
}

// judge judges a snapshot under what the task was begun with. A judgement that is called off is an error, and no verdict.
func (w *workshop) judge(ctx context.Context, s workspace.Snapshot, o occasion) (judge.Judgement, error) {
	in := w.evidence(ctx, s.Tree, s.Changes, o)
	in.Found, in.Workspace, in.Memory = s.Found, s.Workspace, &w.memory
	return judge.Judge(ctx, in)
}

// plan decides what is recorded, and makes the commits. It is nil when an interval has passed without anything new.
func (w *workshop) plan(ctx context.Context, o occasion, j judged) (*journal.Intent, error) {
	state := w.journal()
	i := &journal.Intent{
		Sequence: max(state.Sequence+1, o.orders.NextCheckpoint),
		OldChain: state.Chain.Commit, Commit: state.Chain.Commit,
		OldDelivery: state.Promoted.Commit, Delivery: state.Promoted.Commit,
		Tree:      j.snapshot.Tree.String(),
		Judgement: digest(j.judgement), Standing: j.judgement.Verdict, Objection: objection(j.judgement),
	}
	if err := w.aim(ctx, o, &j); err != nil {
		return nil, err
	}
	i.Report = w.reportOf(o, j, *i)
	if o.closes && j.snapshot.Settled && !j.snapshot.Incomplete && supervise.Completes(o.ending, i.Standing, o.policy.Enforcement) {
		i.Completes = o.task
	}
	if nothingNew(state, j, *i) {
		if o.trigger == contract.TriggerInterval || o.trigger == contract.TriggerChanges {
			return nil, nil
		}
		i.Report.Verdict, i.Report.Action = judge.Skipped, contract.ActionNone
		i.Report.Commit = i.Commit
	} else if err := w.commit(o, j, state, i); err != nil {
		return nil, err
	}
	i.Answers = answers(o, i.Report)
	return i, nil
}

// answers to the requests that a checkpoint was taken for.
func answers(o occasion, r contract.CheckpointReport) []contract.RequestReport {
	message := fmt.Sprintf("checkpoint %s: %s, %s", naming.Checkpoint(o.orders.Feature.Name, r.Sequence), r.Verdict, r.Action)
	switch {
	case !r.Settled:
		message += ", but the workspace could not be held still: " + r.UnsettledReason
	case r.Verdict == judge.Skipped && r.Previous > 0:
		message += ": nothing has changed since checkpoint " + naming.Checkpoint(o.orders.Feature.Name, r.Previous)
	case r.Verdict == judge.Skipped:
		message += ": nothing has changed since the base"
	}
	var list []contract.RequestReport
	for _, id := range o.requests {
		list = append(list, contract.RequestReport{ID: id, OK: r.Settled, Message: message})
	}
	return list
}

// commit makes the commits of an intent durable: one in the chain, and one to deliver if the tree is promoted and not
// what was promoted last.
func (w *workshop) commit(o occasion, j judged, state journal.State, i *journal.Intent) error {
	parent := i.OldChain
	if parent == "" {
		parent = state.Base.Commit
	}
	var err error
	if i.Commit, err = w.writeCommit(j, o, i.Tree, parent, chainMessage(o, *i, w.book.Head())); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if j.consequence.Action == contract.ActionPartlyPromoted {
		i.Promotes = j.back.tree.String()
	}
	if j.consequence.Promote && i.Promoted() != state.Promoted.Tree {
		if i.Delivery, err = w.writeCommit(j, o, i.Promoted(), i.OldDelivery, deliveryMessage(o, *i)); err != nil {
			return fmt.Errorf("write delivery: %w", err)
		}
	}
	if j.consequence.Promote {
		i.Report.DeliveryCommit = i.Delivery
	}
	i.Report.Commit = i.Commit
	if j.back != nil {
		i.Restore, i.RestorePaths, i.Chosen = j.back.tree.String(), j.back.paths, j.back.chosen
	}
	return w.probe("committed")
}

func (w *workshop) writeCommit(j judged, o occasion, tree, parent, message string) (string, error) {
	over, err := objects.ParseID(parent)
	if err != nil {
		return "", err
	}
	holds, err := objects.ParseID(tree)
	if err != nil {
		return "", err
	}
	person := objects.Person{Name: o.orders.Delivery.AuthorName, Email: o.orders.Delivery.AuthorEmail, When: j.snapshot.At.UTC()}
	id, err := w.repo.WriteCommit(objects.Commit{
		Tree: holds, Parents: []objects.ID{over}, Author: person, Committer: person, Message: message,
	})
	return id.String(), err
}

// nothingNew says that the workspace is as the last checkpoint left it, was judged the same, and that nothing is to be
// done about it.
func nothingNew(s journal.State, j judged, i journal.Intent) bool {
	w := s.Workspace
	same := j.snapshot.Settled && w.Settled && w.Tree == i.Tree && w.Judgement == i.Judgement && w.Standing == i.Standing
	promotes := j.consequence.Promote && s.Promoted.Tree != i.Tree
	return same && !promotes && j.consequence.Restore == supervise.RestoreNothing
}

// digest identifies what there is to object to; empty for nothing.
func digest(j judge.Judgement) string {
	if len(j.Violations) == 0 {
		return ""
	}
	text, err := json.Marshal(j)
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func objection(j judge.Judgement) string {
	if len(j.Violations) == 0 {
		return ""
	}
	return judge.Summary(j)
}
