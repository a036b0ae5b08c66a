// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

// reasonCheckpointConflict is the reason of the Event about a report that another Checkpoint contradicts.
const reasonCheckpointConflict = "CheckpointConflict"

// errAhead says that reports are of an attempt that the Feature has not reached yet.
var errAhead = errors.New("the reports are of a later attempt than the Feature is at")

// errConflict says that a Checkpoint of the reported number exists with another content.
type errConflict struct {
	report protocol.ReportAck
	reason string
}

func (e *errConflict) Error() string { return e.reason }

// record stores reports exactly once and gives the last that is stored for good. Checkpoints are created first, each by
// the only name that it can have, then the run moves on past them in one write: a crash in between repeats the first
// without effect. A report that contradicts what is stored is refused; those before it are stored all the same.
func (s *Server) record(ctx context.Context, caller identity.Caller, reports []protocol.Report) (protocol.ReportAck, error) {
	log := logr.FromContextOrDiscard(ctx)
	var ack protocol.ReportAck
	var refused *errConflict
	var fresh []protocol.Report
	var reviews []v1alpha1.ReviewStatus
	var escalated []v1alpha1.DirectiveStatus
	update := func(ctx context.Context, key types.NamespacedName, change runChange) error {
		return s.store.updateCached(ctx, key, change, nil)
	}
	if slices.ContainsFunc(reports, func(r protocol.Report) bool { return r.Checkpoint != nil }) { // an object that was cleared away is not to come again
		update = s.store.update
	}
	err := update(ctx, client.ObjectKeyFromObject(caller.Feature), func(f *v1alpha1.Feature) (v1alpha1.RunStatus, error) {
		refused = nil
		run := runOf(f)
		if f.UID != caller.Feature.UID || f.Status.Attempt > caller.Attempt {
			return run, fmt.Errorf("attempt %d is over: %w", caller.Attempt, identity.ErrForbidden)
		}
		if reports[len(reports)-1].Epoch > f.Status.Attempt {
			return run, errAhead
		}
		stored, err := s.createCheckpoints(ctx, f, run, reports)
		if err != nil && !errors.As(err, &refused) {
			return run, err
		}
		if err := s.acknowledge(ctx, f, run, stored); err != nil {
			return run, err
		}
		if len(stored) > 0 {
			last := stored[len(stored)-1]
			ack = protocol.ReportAck{Epoch: last.Epoch, Sequence: last.Sequence}
		}
		logUnusual(log, f, run, stored)
		fresh = runstatus.Fresh(run, f.Status.Attempt, stored)
		next := runstatus.Fold(run, f.Name, f.Status.Attempt, stored)
		reviews, escalated = runstatus.NewReviews(run, next), runstatus.NewEscalated(run, next)
		return next, nil
	})
	if err != nil {
		return protocol.ReportAck{}, err
	}
	s.options.Observe(caller.Feature.Namespace, fresh, s.options.Clock.Now())
	for _, r := range fresh {
		if f := r.Failed; f != nil {
			s.options.Recorder.Eventf(caller.Feature, nil, corev1.EventTypeWarning, v1alpha1.ReasonCheckpointFailed, "Checkpoint", "%s", runstatus.FailureMessage(*f))
		}
	}
	for _, r := range fresh {
		if k := r.Knowledge; k != nil {
			s.options.Recorder.Eventf(caller.Feature, nil, corev1.EventTypeWarning, v1alpha1.ReasonKnowledgeLeftOut, "Read", "%s", runstatus.KnowledgeMessage(*k))
		}
	}
	for _, r := range reviews {
		kind, reason := corev1.EventTypeNormal, v1alpha1.ReasonReviewed
		switch r.Outcome {
		case protocol.ReviewSkipped:
			kind, reason = corev1.EventTypeWarning, v1alpha1.ReasonReviewSkipped
		case protocol.ReviewMajorDivergence: // another plan follows, or a user decides
			kind = corev1.EventTypeWarning
		}
		s.options.Recorder.Eventf(caller.Feature, nil, kind, reason, "Review", "%s", runstatus.ReviewMessage(r))
	}
	for _, d := range escalated {
		s.options.Recorder.Eventf(caller.Feature, nil, corev1.EventTypeWarning, v1alpha1.ReasonDirectiveEscalated, "Review", "%s", runstatus.EscalatedMessage(d))
	}
	if refused != nil {
		s.options.Recorder.Eventf(caller.Feature, nil, corev1.EventTypeWarning, reasonCheckpointConflict, "Record", "%s", refused.reason)
		return protocol.ReportAck{}, refused
	}
	return ack, nil
}

// createCheckpoints creates the objects of those reports that are not stored yet. It gives the reports that are stored
// then: all of them, or those before the one that the error is about.
func (s *Server) createCheckpoints(ctx context.Context, f *v1alpha1.Feature, run v1alpha1.RunStatus, reports []protocol.Report) ([]protocol.Report, error) {
	for i, r := range reports {
		if r.Checkpoint == nil {
			continue
		}
		switch runstatus.AgeOf(r, run, f.Status.Attempt) {
		case runstatus.Known, runstatus.Ahead:
			continue
		case runstatus.Late:
			// What is counted has had its object, which may have been cleared away since.
			if r.Checkpoint.Sequence <= run.CheckpointSequence {
				continue
			}
		case runstatus.Current:
		}
		if err := s.create(ctx, runstatus.Checkpoint(f, r)); err != nil {
			if conflict, ok := errors.AsType[*errConflict](err); ok {
				conflict.report = protocol.ReportAck{Epoch: r.Epoch, Sequence: r.Sequence}
			}
			return reports[:i], err
		}
	}
	return reports, nil
}

// acknowledge keeps with their Checkpoints what the agent has acknowledged. A Checkpoint that is gone, or that belongs to another Feature, keeps
// nothing. A crash before the run moves on repeats it without effect.
func (s *Server) acknowledge(ctx context.Context, f *v1alpha1.Feature, run v1alpha1.RunStatus, reports []protocol.Report) error {
	for _, r := range reports {
		if age := runstatus.AgeOf(r, run, f.Status.Attempt); r.Acknowledged == nil || age != runstatus.Current && age != runstatus.Late {
			continue
		}
		c := &v1alpha1.Checkpoint{}
		key := client.ObjectKey{Namespace: f.Namespace, Name: naming.Checkpoint(f.Name, r.Acknowledged.Checkpoint)}
		err := s.options.Live.Get(ctx, key, c)
		if err == nil && c.Spec.FeatureUID == string(f.UID) {
			err = s.keepAcknowledged(ctx, c, r)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("keep what the agent has acknowledged with Checkpoint %s: %w", key, err)
		}
	}
	return nil
}

func (s *Server) keepAcknowledged(ctx context.Context, c *v1alpha1.Checkpoint, r protocol.Report) error {
	list, more := runstatus.Acknowledge(c.Status.Acknowledged, r)
	if !more {
		return nil
	}
	status := applyv1alpha1.CheckpointStatus()
	for _, a := range list {
		config := applyv1alpha1.Acknowledgment().WithRule(a.Rule).WithAcknowledgmentTime(a.AcknowledgmentTime)
		if a.Turn > 0 {
			config.WithTurn(a.Turn)
		}
		if a.Text != "" {
			config.WithText(a.Text)
		}
		status.WithAcknowledged(config)
	}
	return s.options.Client.Status().Apply(ctx, applyv1alpha1.Checkpoint(c.Name, c.Namespace).WithUID(c.UID).WithResourceVersion(c.ResourceVersion).WithStatus(status), FieldOwner, client.ForceOwnership)
}

// create creates a Checkpoint. One that exists already must be the same: a record is never overwritten. Where the project is being deleted none
// can be created: the watchdog, which waits for an answer, would keep its pod and the project until the pod's time to end is over, and the
// volume that holds the record goes with them.
func (s *Server) create(ctx context.Context, c *v1alpha1.Checkpoint) error {
	wanted := c.DeepCopy()
	err := s.options.Client.Create(ctx, c, FieldOwner)
	switch {
	case err == nil, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create Checkpoint %s: %w", wanted.Name, err)
	}
	existing := &v1alpha1.Checkpoint{}
	if err := s.options.Live.Get(ctx, client.ObjectKeyFromObject(wanted), existing); err != nil {
		return fmt.Errorf("read Checkpoint %s: %w", wanted.Name, err)
	}
	if existing.Spec.FeatureUID != wanted.Spec.FeatureUID {
		return fmt.Errorf("Checkpoint %s belongs to an earlier Feature of the same name and is about to be deleted", wanted.Name)
	}
	if existing.Spec.Rollback == nil { // whoever made it, or the definition of Checkpoints then, may not have known of rollbacks
		wanted.Spec.Rollback = nil
	}
	// The API server stores times in whole seconds, as the wanted one has them, but reads them in its own zone.
	if !equality.Semantic.DeepEqual(existing.Spec, wanted.Spec) {
		return &errConflict{reason: fmt.Sprintf("Checkpoint %s exists with another content (tree %s of attempt %d), so the manager does not record the report of tree %s of attempt %d",
			wanted.Name, existing.Spec.Tree, existing.Spec.Attempt, wanted.Spec.Tree, wanted.Spec.Attempt)}
	}
	return nil
}

// logUnusual says what an operator may want to know about reports: those left out, and numbers that are missing.
func logUnusual(log logr.Logger, f *v1alpha1.Feature, run v1alpha1.RunStatus, reports []protocol.Report) {
	mark := protocol.ReportAck{Epoch: run.Epoch, Sequence: run.Sequence}
	dropped := 0
	for _, r := range reports {
		if r.Epoch < f.Status.Attempt {
			if r.Status != nil || r.Final != nil {
				dropped++
			}
			continue
		}
		if r.Epoch == mark.Epoch && r.Sequence > mark.Sequence+1 {
			log.Info("Reports are missing", "after", mark.Sequence, "before", r.Sequence, "epoch", r.Epoch)
		}
		if r.Epoch > mark.Epoch || r.Sequence > mark.Sequence {
			mark = protocol.ReportAck{Epoch: r.Epoch, Sequence: r.Sequence}
		}
	}
	if dropped > 0 {
		log.Info("Left out status reports of an earlier attempt", "reports", dropped, "attempt", f.Status.Attempt)
	}
}

// adopt counts Checkpoints that exist beyond the number that the run knows: a replica that died between creating them
// and counting them leaves such. Their reports may have gone with their volume, so their numbers must be taken before
// the next ones are given out.
func (s *Server) adopt(ctx context.Context, f *v1alpha1.Feature) (*v1alpha1.Feature, error) {
	fresh := f
	err := s.store.update(ctx, client.ObjectKeyFromObject(f), func(f *v1alpha1.Feature) (v1alpha1.RunStatus, error) {
		run := runOf(f)
		run = *run.DeepCopy()
		for {
			orphan := &v1alpha1.Checkpoint{}
			key := client.ObjectKey{Namespace: f.Namespace, Name: naming.Checkpoint(f.Name, run.CheckpointSequence+1)}
			err := s.options.Live.Get(ctx, key, orphan)
			if apierrors.IsNotFound(err) || err == nil && orphan.Spec.FeatureUID != string(f.UID) {
				fresh = f.DeepCopy()
				fresh.Status.Run = &run
				return run, nil
			}
			if err != nil {
				return run, fmt.Errorf("read Checkpoint %s: %w", key, err)
			}
			run = runstatus.Adopt(run, orphan)
		}
	})
	return fresh, err
}
