// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// plan decides what is recorded, and makes the commits. It is nil when an interval has passed without anything new.
func (s *Service) plan(ctx context.Context, o Occasion, j judged) (*journal.Intent, error) {
	state := s.Journal.State()
	i := &journal.Intent{
		Sequence: max(state.Sequence+1, o.Orders.NextCheckpoint),
		OldChain: state.Chain.Commit, Commit: state.Chain.Commit,
		OldDelivery: state.Promoted.Commit, Delivery: state.Promoted.Commit,
		Tree:      j.snapshot.Tree.String(),
		Judgement: Digest(j.judgement), TreeVerdict: j.judgement.Verdict, Objection: Objection(j.judgement),
	}
	if err := s.aim(ctx, o, &j); err != nil {
		return nil, err
	}
	i.Report = s.reportOf(o, j, *i)
	promoted := state.Promoted.Tree
	if j.consequence.Promote {
		promoted = i.Tree
	}
	if o.Closes && j.snapshot.Settled && !j.snapshot.Incomplete && !state.Tasks[o.Task].Empty(promoted) && supervise.Completes(o.Ending, i.TreeVerdict, o.Terms.Policy.Enforcement) {
		i.Completes = o.Task
	}
	if o.Aborts && j.back == nil && j.snapshot.Settled && !j.snapshot.Incomplete && promoted == i.Tree {
		i.Aborts = o.Task
	}
	if nothingNew(state, j, *i) {
		if o.Trigger == protocol.TriggerInterval || o.Trigger == protocol.TriggerChanges {
			return nil, nil
		}
		i.Report.Verdict, i.Report.Action = protocol.Skipped, protocol.ActionNone
		i.Report.Commit = i.Commit
	} else if err := s.commit(o, j, state, i); err != nil {
		return nil, err
	}
	i.Answers = answers(o, i.Report)
	return i, nil
}

// answers to the requests that a checkpoint was taken for.
func answers(o Occasion, r protocol.CheckpointReport) []protocol.RequestReport {
	message := fmt.Sprintf("checkpoint %s: %s, %s", naming.Checkpoint(o.Orders.Feature.Name, r.Sequence), r.Verdict, r.Action)
	switch {
	case !r.Settled:
		message += ", but the watchdog could not hold the workspace still: " + r.UnsettledReason
	case r.Verdict == protocol.Skipped && r.Previous > 0:
		message += ": nothing has changed since checkpoint " + naming.Checkpoint(o.Orders.Feature.Name, r.Previous)
	case r.Verdict == protocol.Skipped:
		message += ": nothing has changed since the base"
	}
	var list []protocol.RequestReport
	for _, id := range o.Requests {
		list = append(list, protocol.RequestReport{ID: id, OK: r.Settled, Message: message})
	}
	return list
}

// commit makes the commits of an intent durable: one in the chain, and one to deliver if the tree is promoted and not
// what was promoted last.
func (s *Service) commit(o Occasion, j judged, state journal.State, i *journal.Intent) error {
	parent := i.OldChain
	if parent == "" {
		parent = state.Base.Commit
	}
	var err error
	if i.Commit, err = s.writeCommit(j, o, i.Tree, parent, chainMessage(o, *i, s.Journal.Head())); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if j.consequence.Action == protocol.ActionPartlyPromoted {
		i.Promotes = j.back.tree.String()
	}
	if j.consequence.Promote && i.Promoted() != state.Promoted.Tree {
		if i.Delivery, err = s.writeCommit(j, o, i.Promoted(), i.OldDelivery, deliveryMessage(o, *i)); err != nil {
			return fmt.Errorf("write delivery: %w", err)
		}
	}
	if j.consequence.Promote {
		i.Report.DeliveryCommit = i.Delivery
	}
	i.Report.Commit = i.Commit
	if j.back != nil {
		i.Restore, i.RestorePaths, i.Chosen = j.back.tree.String(), j.back.paths, j.back.chosen
		i.TakesBack = j.consequence.Restore == supervise.RestoreAll || j.consequence.Restore == supervise.RestorePaths
		i.Report.Rollback = rollbackOf(o, j, i.TakesBack)
	}
	return s.Probe.After("committed")
}

func (s *Service) writeCommit(j judged, o Occasion, tree, parent, message string) (string, error) {
	over, err := objects.ParseID(parent)
	if err != nil {
		return "", err
	}
	holds, err := objects.ParseID(tree)
	if err != nil {
		return "", err
	}
	person := objects.Person{Name: o.Orders.Delivery.AuthorName, Email: o.Orders.Delivery.AuthorEmail, When: j.snapshot.At.UTC()}
	id, err := s.Repository.WriteCommit(objects.Commit{
		Tree: holds, Parents: []objects.ID{over}, Author: person, Committer: person, Message: message,
	})
	return id.String(), err
}

// nothingNew says that the workspace is as the last checkpoint left it, had the same verdict, and needs no action.
func nothingNew(s journal.State, j judged, i journal.Intent) bool {
	w := s.Workspace
	same := j.snapshot.Settled && w.Settled && w.Tree == i.Tree && w.Judgement == i.Judgement && w.TreeVerdict == i.TreeVerdict
	promotes := j.consequence.Promote && s.Promoted.Tree != i.Tree
	return same && !promotes && j.consequence.Restore == supervise.RestoreNothing
}

// Digest identifies what there is to object to; empty for nothing.
func Digest(j judge.Judgement) string {
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
