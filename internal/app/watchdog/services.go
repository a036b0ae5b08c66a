// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/consult"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/deliver"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/direct"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/handover"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/judging"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/remote"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/retain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/gatewayclient"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// services work on the trusted repository of an attempt.
type services struct {
	attempt    *attempt
	repository *git.Repository
	access     remote.Access
	workspace  *checkpoint.Workspace
	checkpoint *checkpoint.Service
	delivery   *deliver.Service
	retain     *retain.Service
	handover   *handover.Service
	directives *direct.Service
	consult    *consult.Desk
}

// newServices for an attempt whose journal is open. Sealed: there is no agent. Before there is a base there need be no
// repository: nothing can be asked of the services then that they do not refuse.
func newServices(a *attempt, repo *git.Repository, sealed bool) *services {
	o, dir := a.options, a.options.Paths.trusted()
	s := &services{attempt: a, repository: repo, directives: direct.New(a.journal, a.options.Log)}
	s.consult = consult.New(consult.Options{Gateway: o.Gateway, Link: gatewayclient.Link{Name: o.GatewayName, Token: o.Paths.Token, CA: o.Paths.CA}, Log: o.Log})
	s.access = remote.Access{GitSecret: o.Paths.GitSecret, Gateway: o.Gateway, Token: o.Paths.Token, CA: o.Paths.CA}
	s.workspace = checkpoint.NewWorkspace(workspace.Options{
		Root: o.Paths.Workspace, Repository: repo, Scratch: dir.Scratch(), Now: o.Now, Logger: o.Log,
	}, a.health)
	judge := judging.New(repo, func() (objects.ID, error) { return objects.ParseID(a.journal.State().Base.Tree) }, o.Log)
	s.handover = handover.New(handover.Options{
		Dir: dir, Journal: a.journal, Repository: repo, Log: o.Log, Probe: o.Probe,
		Send: handover.Sender(o.Ledger, gatewayclient.Link{Name: o.GatewayName, Token: o.Paths.Token, CA: o.Paths.CA}),
	})
	s.checkpoint = checkpoint.New(checkpoint.Options{
		Feature: o.Feature, Dir: dir, Journal: a.journal, Guard: a.volume.Guard, Repository: repo, Workspace: s.workspace, Judge: judge,
		Reports: a.reports, Taken: s.handover.Taken, Waiting: a.spool.Pending, Refused: a.spool.NewlyRefused, Health: a.health, Sealed: sealed, Now: o.Now, Log: o.Log, Probe: o.Probe,
	})
	s.delivery = deliver.New(deliver.Options{
		Journal: a.journal, Guard: a.volume.Guard, Repository: repo, Access: s.access, Judge: judge, Log: o.Log, Probe: o.Probe,
	})
	s.retain = retain.New(retain.Options{
		Journal: a.journal, Repository: repo, Workspace: s.workspace, MaxPacks: o.MaxPacks, PruneAbove: o.PruneAbove, Log: o.Log, Probe: o.Probe,
	})
	return s
}

// complete what a crash interrupted, and refuse refs that are not where the journal has them.
func (s *services) complete(ctx context.Context) error {
	// What is promoted is laid into the workspace first.
	if i := s.attempt.journal.State().Pending; i != nil && i.Restore != "" && i.Delivery != i.OldDelivery {
		if err := s.workspace.Need(ctx, s.attempt.journal.State()); err != nil {
			return err
		}
	}
	if err := s.checkpoint.Recover(ctx); err != nil {
		return err
	}
	if err := s.delivery.Replace(ctx); err != nil {
		return err
	}
	j := s.attempt.journal.State()
	return trusted.CheckRefs(ctx, s.repository, trusted.Ref{Name: protocol.RefBase, Commit: j.Base.Commit},
		trusted.Ref{Name: protocol.RefChain, Commit: j.Chain.Commit}, trusted.Ref{Name: protocol.RefDelivery, Commit: j.Promoted.Commit})
}

// close gives everything back.
func (s *services) close() {
	err := errors.Join(s.workspace.Close(), s.checkpoint.Close())
	if s.repository != nil {
		err = errors.Join(err, s.repository.Close())
	}
	if err != nil {
		s.attempt.options.Log.Warn("Closing failed", "error", err.Error())
	}
}
