// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// maxNamed bounds the paths that the result of a request names.
const maxNamed = 5

// refusal is why a rollback is not done, in words for whoever asked. Nothing was touched.
type refusal struct{ reason string }

// Error is the reason.
func (r *refusal) Error() string { return r.reason }

func refuse(format string, args ...any) error { return &refusal{reason: fmt.Sprintf(format, args...)} }

// rollback is one that was asked for, on its way.
type rollback struct {
	contract.Rollback
	id string
	// target is the tree to go back to, from says whose it is.
	target objects.ID
	from   string
}

// rollBack takes the workspace back as a person asked, and tells the agent.
func (r *run) rollBack(a supervise.Action, o occasion) work {
	running := r.state.Agent.Running
	return func(ctx context.Context) (supervise.Event, error) {
		e := supervise.RolledBack{ID: a.Request.ID}
		notice, err := r.goBack(ctx, o, a.Request)
		if o.frozen() && !fatal(err) {
			// What went back is back, whether the freeze was perfect or not.
			if err := o.freezer.Thaw(ctx); err != nil {
				r.Log.WarnContext(ctx, "Thawing after a rollback", "error", err.Error())
			}
		}
		if notice != nil && running && !fatal(err) {
			r.told = "" // what is wrong now is told again
			r.input(ctx, r.journal().Sequence, *notice)
		}
		var no *refusal
		switch {
		case errors.As(err, &no):
			r.Log.InfoContext(ctx, "Rollback refused", "request", e.ID, "reason", no.reason)
			return e, r.answer(contract.RequestReport{ID: e.ID, Message: clip(no.reason, maxFault)})
		case err != nil:
			return r.missed(ctx, a, err)
		}
		s := r.journal()
		e.Went, e.Head, e.Changed = true, s.Promoted.Commit, s.Promoted.Tree != s.Base.Tree
		return e, nil
	}
}

// goBack captures the state of now, goes back, and captures what is there then. The notice is nil when nothing went back.
func (r *run) goBack(ctx context.Context, o occasion, request contract.Request) (*rollbackNotice, error) {
	if r.journal().Base == nil {
		return nil, refuse("no attempt has come so far as to lay out a workspace: there is nothing to roll back")
	}
	if err := r.needWorkspace(ctx, o.orders); err != nil {
		return nil, err
	}
	if err := r.catchUp(ctx, o); err != nil {
		return nil, err
	}
	if _, done := r.journal().Requests[request.ID]; done { // by completing what a crash had interrupted
		return nil, nil
	}
	b := rollback{Rollback: *request.Rollback, id: request.ID}
	if err := r.find(&b, o); err != nil {
		return nil, err
	}
	o.hold, o.requests = true, nil
	j, err := r.glance(ctx, o, true)
	if err == nil {
		err = r.probe("captured")
	}
	if err != nil {
		return nil, err
	}
	if !j.snapshot.Settled {
		return nil, r.heldInstead(ctx, o, j)
	}
	if j.back, err = r.destination(ctx, o, b, j); err != nil {
		return nil, err
	}
	reverted := touched(j)
	if len(reverted) == 0 {
		return nil, r.answer(contract.RequestReport{ID: b.id, OK: true, Message: b.nothing()})
	}
	return r.carryOut(ctx, o, b, j, reverted)
}

// carryOut records the state of now as a checkpoint, goes back, and takes a checkpoint of that.
func (r *run) carryOut(ctx context.Context, o occasion, b rollback, j judged, reverted []string) (*rollbackNotice, error) {
	j.consequence = supervise.Consequence{Action: contract.ActionReverted, Restore: supervise.RestoreChosen}
	i, err := r.plan(ctx, o, j)
	if err != nil {
		return nil, err
	}
	notice := b.notice(o.orders.Feature, *i, j, reverted)
	i.Answers = []contract.RequestReport{{ID: b.id, OK: true, Message: clip(notice.Message, maxFault)}}
	if err := r.record(ctx, *i); err != nil {
		return nil, err
	}
	r.Log.InfoContext(ctx, "Rolled back", "request", b.id, "kind", b.Kind, "to", b.from, "checkpoint", i.Sequence, "paths", len(reverted))
	o.hold, o.atOnce = false, true
	t, err := r.checkpoint(ctx, o)
	if err == nil && t.snapshot.Tree != j.back.tree && t.snapshot.Settled {
		err = fmt.Errorf("the workspace is %s after a rollback to %s", t.snapshot.Tree, j.back.tree)
	}
	return &notice, err
}

// needWorkspace opens the workspace of an attempt that could do without it so far.
func (w *workshop) needWorkspace(ctx context.Context, orders contract.Orders) error {
	if w.engine != nil {
		return nil
	}
	return w.openWorkspace(ctx, orders)
}

// find says which tree to go back to. Checkpoint objects come and go; the journal knows every one there ever was.
func (w *workshop) find(b *rollback, o occasion) (err error) {
	s := w.journal()
	if b.Checkpoint == 0 {
		b.from = "the last valid state"
		b.target, err = objects.ParseID(s.Promoted.Tree)
		return err
	}
	b.from = "checkpoint " + naming.Checkpoint(o.orders.Feature.Name, b.Checkpoint)
	i, found, err := w.book.checkpoint(b.Checkpoint)
	switch {
	case err != nil:
		return err
	case s.Dropped[b.Checkpoint]:
		return refuse("the content of %s was dropped, because what was never promoted took more than the policy's retention.unpromotedBytes; choose a newer or a promoted one", b.from)
	case !found:
		return refuse("%s is not on the trusted volume of this Feature, whose newest is number %d", b.from, s.Sequence)
	}
	b.target, err = objects.ParseID(i.Tree)
	return err
}

// heldInstead records a state that would not hold still. Nothing goes back over what was not captured.
func (w *workshop) heldInstead(ctx context.Context, o occasion, j judged) error {
	i, err := w.plan(ctx, o, j)
	if err == nil && i != nil {
		err = w.record(ctx, *i)
	}
	if err != nil {
		return err
	}
	return refuse("nothing was touched, because the workspace could not be held still to keep its state first: %s; ask again with a new id",
		j.snapshot.Reason)
}

// destination is what the workspace is to become. Where the policy would take that back at once it is not begun.
func (w *workshop) destination(ctx context.Context, o occasion, b rollback, j judged) (*restoration, error) {
	var paths []string
	switch b.Kind {
	case contract.RollbackFull:
	case contract.RollbackPaths:
		for _, path := range b.Paths {
			paths = append(paths, strings.TrimRight(path, "/"))
		}
		if err := w.known(ctx, b, j, paths); err != nil {
			return nil, err
		}
	case contract.RollbackSmart:
		if paths = violatingPaths(j.judgement); len(paths) == 0 && j.judgement.Verdict == judge.Invalid {
			return nil, refuse("no single path can be taken back to fix what is wrong: %s", objection(j.judgement))
		}
	default:
		return nil, refuse("unknown kind of rollback %q", b.Kind)
	}
	back, err := w.splice(ctx, j.snapshot.Tree, b.target, paths)
	if err != nil {
		return nil, err
	}
	back.chosen = true
	verdict, err := w.judgeTree(ctx, back.tree, o, surroundings{})
	if err != nil {
		return nil, err
	}
	if supervise.Act(verdict, o.policy, true).Restore != supervise.RestoreNothing {
		return nil, refuse("the policy (strategy %s, revertOnViolation %s) would take that state back at once: %s",
			o.policy.Execution.Strategy, o.policy.Execution.RevertOnViolation, objection(verdict))
	}
	return back, nil
}

// known refuses paths that are nowhere: most likely they are misspelt.
func (w *workshop) known(ctx context.Context, b rollback, j judged, paths []string) error {
	have, err := w.repo.Tree(ctx, j.snapshot.Tree)
	if err != nil {
		return err
	}
	target, err := w.repo.Tree(ctx, b.target)
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

// touched are the paths that go back: those that become different, and those that no tree can hold.
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

// nothing is the result of a rollback that had nothing to do.
func (b rollback) nothing() string {
	if b.Kind == contract.RollbackSmart {
		return "Reverted 0 files with violations: no path breaks a rule"
	}
	return "Reverted 0 files: the workspace is there as it is in " + b.from
}

// notice says what went back, to the agent and to whoever asked.
func (b rollback) notice(f contract.FeatureRef, i journal.Intent, j judged, reverted []string) rollbackNotice {
	n := rollbackNotice{
		Type: "rollback", RequestID: b.id, Kind: strings.ToLower(b.Kind), CheckpointID: naming.Checkpoint(f.Name, i.Sequence),
		Timestamp: j.snapshot.At.UTC(), ActionTaken: "reverted", FilesReverted: []string{},
	}
	if b.Checkpoint > 0 {
		n.RestoredFrom = naming.Checkpoint(f.Name, b.Checkpoint)
	}
	for _, path := range reverted[:min(len(reverted), maxToldFiles)] {
		n.FilesReverted = append(n.FilesReverted, toldPath(path))
	}
	gone := within(reverted)
	for _, c := range j.snapshot.Changes {
		if !gone(c.Path) {
			n.ChangesKept++
		}
	}
	n.Message = "Reverted " + plural(len(reverted), "file")
	switch b.Kind {
	case contract.RollbackSmart:
		n.Message += fmt.Sprintf(" with violations: %s. Kept %s", named(reverted), plural(n.ChangesKept, "valid change"))
	case contract.RollbackPaths:
		n.Message += fmt.Sprintf(": %s. Kept %s", named(reverted), plural(n.ChangesKept, "other change"))
	default:
		n.Message += ": " + named(reverted)
	}
	n.Message += fmt.Sprintf(". As in %s; the state before it is checkpoint %s", b.from, n.CheckpointID)
	return n
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// named are the first paths of a list, as people read them.
func named(paths []string) string {
	var names []string
	for _, path := range paths[:min(len(paths), maxNamed)] {
		names = append(names, judge.Escape(path))
	}
	if more := len(paths) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
