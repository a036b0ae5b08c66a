// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// doubtful is why what a lost attempt left is not promoted.
const doubtful = "an attempt that was lost left it behind, perhaps half written"

// Recover completes a checkpoint that is in the journal and not carried out in full, if there is one.
func (s *Service) Recover(ctx context.Context) error { return s.recorder.recover(ctx) }

// ready completes what a crash interrupted. Without an agent, what differs from what the last checkpoint left is not to be
// trusted: the process that wrote it may have been in the middle of a file.
func (s *Service) ready(ctx context.Context, o *Occasion) error {
	if s.Journal.State().Base == nil {
		return errors.New("no attempt has prepared a workspace yet")
	}
	if err := s.Workspace.Need(ctx, s.Journal.State()); err != nil {
		return err
	}
	if err := s.catchUp(ctx, *o); err != nil || !s.Sealed {
		return err
	}
	j, err := s.lookOnce(ctx, *o, false)
	if err == nil && j.snapshot.Tree.String() != s.Journal.State().Workspace.Tree {
		o.Doubt = doubtful
	}
	return err
}

// catchUp completes an earlier checkpoint with the agent held still.
func (s *Service) catchUp(ctx context.Context, o Occasion) error {
	if s.Journal.State().Pending == nil {
		return nil
	}
	if o.Freezer == nil {
		return s.recorder.recover(ctx)
	}
	_, err := o.Freezer.Freeze(ctx)
	if err == nil {
		err = s.recorder.recover(ctx)
	}
	if steps.Fatal(err) {
		return err
	}
	return errors.Join(err, o.Freezer.Thaw(ctx))
}

// KeepRemains puts what a lost attempt left in the workspace into the chain before the workspace goes back. The watchdog never promotes it:
// the process that wrote it may have been in the middle of a file.
func (s *Service) KeepRemains(ctx context.Context, orders protocol.Orders) error {
	state := s.Journal.State()
	o := Occasion{Trigger: protocol.TriggerFinal, Terms: TermsOf(orders), Orders: orders, Doubt: doubtful}
	name, task := state.Unfinished()
	if name == "" {
		return nil
	}
	o.Task, o.Terms.Policy, o.Terms.Plan = name, task.Policy, task.Plan
	j, err := s.lookOnce(ctx, o, false)
	if err != nil {
		return err
	}
	switch j.snapshot.Tree.String() {
	case state.Promoted.Tree, state.Workspace.Tree, objects.EmptyTree.String():
		return nil
	}
	i, err := s.plan(ctx, o, j)
	if err != nil || i == nil {
		return err
	}
	return s.recorder.record(ctx, *i)
}
