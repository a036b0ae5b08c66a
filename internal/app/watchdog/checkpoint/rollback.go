// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/judging"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// refusal is why a rollback is not done, in words for the person who asked. Nothing was touched.
type refusal struct{ reason string }

// Error is the reason.
func (r *refusal) Error() string { return r.reason }

func refuse(format string, args ...any) error { return &refusal{reason: fmt.Sprintf(format, args...)} }

// rollback is a requested rollback in progress.
type rollback struct {
	protocol.Rollback
	service *Service
	id      string
	// target is the tree to go back to, from says whose it is.
	target objects.ID
	from   string
	// begun is the number of the newest valid checkpoint at the beginning of an aborted task; 0 for none. toBase: the task began on the base.
	begun  int64
	toBase bool
}

// RollBack restores the workspace as a user asked, and answers the request. The notice for the agent is nil if nothing went back; refused
// says that RollBack refused the request. After an error the notice still says what went back.
func (s *Service) RollBack(ctx context.Context, o Occasion, request protocol.Request) (n *notice.Rollback, refused bool, err error) {
	n, err = s.goBack(ctx, o, request)
	if o.Frozen() && !steps.Fatal(err) {
		// What went back is back, whether the freeze was perfect or not.
		if err := o.Freezer.Thaw(ctx); err != nil {
			s.Log.WarnContext(ctx, "Thawing after a rollback", "error", err.Error())
		}
	}
	if no, is := errors.AsType[*refusal](err); is {
		s.Log.InfoContext(ctx, "Rollback refused", "request", request.ID, "reason", no.reason)
		return n, true, s.Reports.Answer(protocol.RequestReport{ID: request.ID, Message: plain.CutBytes(no.reason, faults.MaxMessage)})
	}
	return n, false, err
}

// goBack captures the state of now, goes back, and captures what is there then. The notice is nil when nothing went back.
func (s *Service) goBack(ctx context.Context, o Occasion, request protocol.Request) (*notice.Rollback, error) {
	if s.Journal.State().Base == nil {
		return nil, refuse("no attempt has prepared a workspace yet: there is nothing to roll back")
	}
	if err := s.Workspace.Need(ctx, s.Journal.State()); err != nil {
		return nil, err
	}
	if err := s.catchUp(ctx, o); err != nil {
		return nil, err
	}
	if _, done := s.Journal.State().Requests[request.ID]; done { // by completing what a crash had interrupted
		return nil, nil
	}
	b := rollback{Rollback: *request.Rollback, service: s, id: request.ID}
	if err := b.find(o); err != nil {
		return nil, err
	}
	o.Hold, o.Requests, o.Aborts = true, nil, false
	j, err := s.lookOnce(ctx, o, true)
	if err == nil {
		err = s.Probe.After("captured")
	}
	if err != nil {
		return nil, err
	}
	if !j.snapshot.Settled {
		return nil, b.heldInstead(ctx, o, j)
	}
	if j.back, err = b.destination(ctx, o, j); err != nil {
		return nil, err
	}
	reverted := touched(j)
	if len(reverted) == 0 {
		return nil, s.Reports.Answer(protocol.RequestReport{ID: b.id, OK: true, Message: b.nothing()})
	}
	return b.carryOut(ctx, o, j, reverted)
}

// carryOut records the state of now as a checkpoint, goes back, and takes a checkpoint of that.
func (b *rollback) carryOut(ctx context.Context, o Occasion, j judged, reverted []string) (*notice.Rollback, error) {
	j.consequence = supervise.Consequence{Action: protocol.ActionReverted, Restore: supervise.RestoreChosen}
	i, err := b.service.plan(ctx, o, j)
	if err != nil {
		return nil, err
	}
	n := b.notice(o.Orders.Feature, *i, j, reverted)
	i.Answers = []protocol.RequestReport{{ID: b.id, OK: true, Message: plain.CutBytes(n.Message, faults.MaxMessage)}}
	if err := b.service.recorder.record(ctx, *i); err != nil {
		return nil, err
	}
	b.service.Log.InfoContext(ctx, "Rolled back", "request", b.id, "kind", b.Kind, "to", b.from, "checkpoint", i.Sequence, "paths", len(reverted))
	o.Hold, o.AtOnce = false, true
	t, err := b.service.take(ctx, o)
	if err == nil && t.Snapshot.Tree != j.back.tree && t.Snapshot.Settled {
		err = fmt.Errorf("the workspace is %s after a rollback to %s", t.Snapshot.Tree, j.back.tree)
	}
	return &n, err
}

// find says which tree to go back to. Checkpoint objects come and go; the journal knows every one there ever was.
func (b *rollback) find(o Occasion) (err error) {
	state := b.service.Journal.State()
	if beginning := state.Tasks[o.Task].Beginning(); o.Aborts && beginning != "" {
		b.from = "the beginning of task " + o.Task
		if b.target, err = objects.ParseID(beginning); err == nil {
			err = b.begins(state, beginning, state.Tasks[o.Task].Since)
		}
		return err
	}
	if b.Checkpoint == 0 {
		b.from = "the last valid state"
		b.target, err = objects.ParseID(state.Promoted.Tree)
		return err
	}
	b.from = "checkpoint " + naming.Checkpoint(o.Orders.Feature.Name, b.Checkpoint)
	i, found, err := b.service.Journal.Checkpoint(b.Checkpoint)
	switch {
	case err != nil:
		return err
	case state.Dropped[b.Checkpoint]:
		return refuse("the watchdog dropped the content of %s, because content that was never promoted took more than the policy's retention.maxUnpromotedSize. Choose a newer or a promoted one", b.from)
	case !found:
		return refuse("%s is not on the trusted volume of this Feature, whose newest is number %d", b.from, state.Sequence)
	}
	b.target, err = objects.ParseID(i.Tree)
	return err
}

// begins finds the checkpoint that has the tree from the beginning of a task. If only a part of a checkpoint was promoted, none has it: then it is the
// newest valid one, as everywhere else.
func (b *rollback) begins(state journal.State, tree string, since int64) error {
	if tree == state.Base.Tree {
		b.toBase = true
		return nil
	}
	for _, is := range []func(journal.Intent) bool{
		func(i journal.Intent) bool { return i.Tree == tree && i.Report.Verdict != protocol.Skipped },
		func(i journal.Intent) bool {
			return i.Report.Verdict == protocol.Valid && i.Report.Action != protocol.ActionReverted
		},
	} {
		i, found, err := b.service.Journal.Newest(func(i journal.Intent) bool { return i.Sequence <= since && i.Report.Settled && is(i) })
		if err != nil || found {
			b.begun = i.Sequence
			return err
		}
	}
	b.toBase = since > 0 // an earlier version has not counted them
	return nil
}

// heldInstead records a state that would not hold still. Nothing goes back over what was not captured.
func (b *rollback) heldInstead(ctx context.Context, o Occasion, j judged) error {
	i, err := b.service.plan(ctx, o, j)
	if err == nil && i != nil {
		err = b.service.recorder.record(ctx, *i)
	}
	if err != nil {
		return err
	}
	return refuse("the workspace is as it was: the watchdog could not hold it still to keep its state first: %s; ask again with a new id",
		j.snapshot.Reason)
}

// destination is what the workspace is to become. Where the policy would take that back at once it is not begun.
func (b *rollback) destination(ctx context.Context, o Occasion, j judged) (*restoration, error) {
	var paths []string
	switch b.Kind {
	case protocol.RollbackFull:
	case protocol.RollbackPaths:
		for _, path := range b.Paths {
			paths = append(paths, strings.TrimRight(path, "/"))
		}
		if err := b.known(ctx, j, paths); err != nil {
			return nil, err
		}
	case protocol.RollbackSmart:
		if paths = violatingPaths(j.judgement); len(paths) == 0 && j.judgement.Verdict == protocol.Invalid {
			return nil, refuse("taking back single paths cannot fix what is wrong: %s", Objection(j.judgement))
		}
	default:
		return nil, refuse("unknown kind of rollback %q", b.Kind)
	}
	back, err := b.service.splice(ctx, j.snapshot.Tree, b.target, paths)
	if err != nil {
		return nil, err
	}
	back.chosen, back.to, back.toBase, back.request = true, max(b.Checkpoint, b.begun), b.toBase, b.id
	verdict, err := b.service.Judge.Tree(ctx, back.tree, o.Terms, judging.Surroundings{})
	if err != nil {
		return nil, err
	}
	if supervise.Act(verdict, o.Terms.Policy, true).Restore != supervise.RestoreNothing {
		return nil, refuse("the policy (strategy %s, revertOnViolation %s) would take that state back at once: %s",
			o.Terms.Policy.Execution.Strategy, o.Terms.Policy.Execution.RevertOnViolation, Objection(verdict))
	}
	return back, nil
}

// known refuses paths that are nowhere: most likely they are misspelt.
func (b *rollback) known(ctx context.Context, j judged, paths []string) error {
	have, err := b.service.Repository.Tree(ctx, j.snapshot.Tree)
	if err != nil {
		return err
	}
	target, err := b.service.Repository.Tree(ctx, b.target)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return refuse("a rollback of paths names no path")
	}
	for _, path := range paths {
		found := slices.ContainsFunc(j.snapshot.Found, func(f judge.Found) bool { return within([]string{path})(f.Path) })
		if !found && have.Lookup(path) == nil && target.Lookup(path) == nil {
			return refuse("path %s is neither in the workspace nor in %s; paths are relative to the root of the repository",
				judge.Escape(path), b.from)
		}
	}
	return nil
}

// touched are the paths that go back: paths that become different, and paths that no tree can hold.
func touched(j judged) []string {
	list := slices.Clone(j.back.differ)
	all := j.back.paths == nil
	raw := make([]string, 0, len(j.back.paths))
	for _, p := range j.back.paths {
		raw = append(raw, string(p))
	}
	selected := within(raw)
	for _, f := range j.snapshot.Found {
		if all || selected(f.Path) {
			list = append(list, f.Path)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// nothing is the result of a rollback without a change.
func (b *rollback) nothing() string {
	if b.Kind == protocol.RollbackSmart {
		return "Reverted 0 files with violations: no path breaks a rule"
	}
	return "Reverted 0 files: the workspace is already as it is in " + b.from
}

// notice says what went back, to the agent and to the person who asked.
func (b *rollback) notice(f protocol.FeatureRef, i journal.Intent, j judged, reverted []string) notice.Rollback {
	r := notice.Reverted{Request: b.id, Kind: b.Kind, Before: naming.Checkpoint(f.Name, i.Sequence), From: b.from, At: j.snapshot.At, Paths: reverted}
	if b.Checkpoint > 0 {
		r.To = naming.Checkpoint(f.Name, b.Checkpoint)
	}
	r.Kept = j.kept(reverted)
	return notice.RolledBack(r)
}
