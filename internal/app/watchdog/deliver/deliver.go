// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deliver pushes promoted work to the branch: checked again under the policy in effect now, with its history or as one commit, and
// never by force.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/judging"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/remote"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/bounds"
	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// Options of a Service.
type Options struct {
	Journal *trusted.Journal
	// Guard fails when another attempt owns the trusted volume.
	Guard      func() error
	Repository *git.Repository
	// Access to the Feature's repository.
	Access remote.Access
	Judge  *judging.Judge
	Log    *slog.Logger
	Probe  steps.Probe
}

// Service delivers.
type Service struct{ Options }

// New service.
func New(o Options) *Service { return &Service{Options: o} }

// Review checks the delivery under the policy in effect now, and lets the commit with documents of reviewers follow what may be delivered.
func (s *Service) Review(ctx context.Context, o protocol.Orders) (supervise.Reviewed, error) {
	e, err := s.reviewWork(ctx, o)
	if j := s.Journal.State(); err != nil || e.Objection != "" || j.Promoted.Tree == j.Base.Tree {
		return e, err
	}
	return e, s.commitDocuments(ctx, o, &e)
}

// reviewWork checks base…head, and base…each commit of its history. If the policy says so, it makes the delivery one commit.
func (s *Service) reviewWork(ctx context.Context, o protocol.Orders) (supervise.Reviewed, error) {
	e := supervise.Reviewed{PolicyHash: o.Policy.Hash}
	if err := s.Replace(ctx); err != nil { // a review before this one may have come so far
		return e, err
	}
	if fault := bounds.Check(used(o), o.Policy); fault != nil {
		e.Reason, e.Objection = fault.Reason, plain.CutBytes(fault.Message, faults.MaxMessage)
		return e, nil
	}
	j, err := s.judgeHead(ctx, o)
	if err != nil {
		return e, err
	}
	s.Log.InfoContext(ctx, "Reviewed before delivery", "verdict", j.Verdict, "policy", o.Policy.Hash, "violations", len(j.Violations))
	switch {
	case o.Policy.Enforcement == policy.Audit: // it checks everything, and holds nothing
		return e, nil
	case j.Verdict != protocol.Valid:
		e.Objection = judge.Summary(j)
		return e, nil
	}
	why, err := s.judgeHistory(ctx, o)
	switch {
	case err != nil || why == "":
		return e, err
	case o.Policy.History == policy.HistoryHold:
		e.Reason, e.Objection = protocol.ReasonHistoryInvalid, plain.CutBytes(why+" (delivery.history is Hold)", faults.MaxMessage)
		return e, nil
	}
	e.Squashed = why
	e.Head, err = s.squash(ctx, o, why)
	return e, err
}

func (s *Service) judgeHead(ctx context.Context, o protocol.Orders) (judge.Judgement, error) {
	head, err := objects.ParseID(s.Journal.State().Promoted.Tree)
	if err != nil {
		return judge.Judgement{}, err
	}
	return s.Judge.Tree(ctx, head, checkpoint.TermsOf(o), judging.Surroundings{})
}

// used is what a delivery uses outside of the pod.
func used(o protocol.Orders) bounds.Use {
	u := bounds.Use{Repository: o.Repository.URL}
	if o.Delivery.Push {
		u.Branch = o.Delivery.Branch
	}
	return u
}

// NotAllowedError: the policy in effect now does not allow the repository or the branch.
type NotAllowedError struct{ Fault protocol.Fault }

func (e *NotAllowedError) Error() string { return e.Fault.Message }

// ErrUnproved: a gate that is required before the delivery has not passed on the tree of the head.
var ErrUnproved = errors.New("a gate before the delivery has not passed")

// Push delivers the head and returns its commit; never by force, only to where the policy in effect now allows, and only if each required gate has passed on its tree. It may repeat an earlier push.
func (s *Service) Push(ctx context.Context, o protocol.Orders) (string, error) {
	head := s.Journal.State().Head().Commit
	if err := s.Guard(); err != nil {
		return head, err
	}
	if fault := bounds.Check(used(o), o.Policy); fault != nil {
		return head, &NotAllowedError{Fault: *fault}
	}
	if j := s.Journal.State(); !gates.Proved(o.Delivery.Gates, j.Proofs, j.Head().Tree) {
		return head, fmt.Errorf("%w: commit %s", ErrUnproved, head)
	}
	commit, err := objects.ParseID(head)
	if err != nil {
		return head, err
	}
	remote, err := s.Access.Remote(o)
	if err != nil {
		return head, err
	}
	if err := s.Repository.Push(ctx, remote, commit, o.Delivery.Branch); err != nil {
		return head, err
	}
	if err := s.Probe.After("pushed"); err != nil {
		return head, err
	}
	if err := s.Journal.Note(journal.Record{Delivered: &journal.Delivered{Commit: head, Branch: o.Delivery.Branch}}); err != nil {
		return head, err
	}
	return head, s.Probe.After("delivery journaled")
}
