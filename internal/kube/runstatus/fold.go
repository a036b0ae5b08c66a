// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runstatus computes a Feature's status.run from the reports of watchdogs, and the Checkpoints that record them. It sees only
// values; internal/kube/intake reads and writes the objects.
package runstatus

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxRequests is how many results of requests are kept in a run; spec.requests has room for as many.
	maxRequests = 64
	// maxMessage bounds messages in characters, as the API does where it bounds them.
	maxMessage = 1024
	// maxName bounds names of tasks, states and reasons in characters.
	maxName = 128
)

// Fold returns the run of a Feature at an attempt after the given reports, sorted by number. (epoch, sequence) of the run is the high-water
// mark: Fold skips reports that are not above it. A checkpoint counts once by its own number, whatever report brings it. From an earlier
// attempt, which ended before it could report, only checkpoints, results of requests and the plan count: its status is history. Fold does not change
// its arguments.
func Fold(run v1alpha1.RunStatus, feature string, attempt int64, reports []protocol.Report) v1alpha1.RunStatus {
	next := *run.DeepCopy()
	for _, r := range reports {
		next = fold(next, feature, attempt, r)
	}
	return next
}

func fold(run v1alpha1.RunStatus, feature string, attempt int64, r protocol.Report) v1alpha1.RunStatus {
	switch AgeOf(r, run, attempt) {
	case Current:
		run = begin(run, r.Epoch)
		run.Sequence = r.Sequence
		apply(&run, feature, r)
	case Late:
		applyLate(&run, feature, r)
	case Known, Ahead:
	}
	return run
}

// Fresh returns the reports that Fold has not seen before, for other counters that count each of them once. From an earlier attempt it
// returns only checkpoints.
func Fresh(run v1alpha1.RunStatus, attempt int64, reports []protocol.Report) []protocol.Report {
	next := *run.DeepCopy()
	var fresh []protocol.Report
	for _, r := range reports {
		age := AgeOf(r, next, attempt)
		counted := r.Checkpoint != nil && r.Checkpoint.Sequence <= next.CheckpointSequence
		if !counted && (age == Current || age == Late && r.Checkpoint != nil) {
			fresh = append(fresh, r)
		}
		next = fold(next, "", attempt, r)
	}
	return fresh
}

// Age says when a report comes: of which attempt it is, and whether it was applied before.
type Age int

// Ages.
const (
	// Current reports are applied.
	Current Age = iota
	// Known ones were applied before.
	Known
	// Late ones are of an earlier attempt.
	Late
	// Ahead are of an attempt that does not exist yet.
	Ahead
)

// AgeOf a report to the run of a Feature that is at an attempt.
func AgeOf(r protocol.Report, run v1alpha1.RunStatus, attempt int64) Age {
	switch {
	case r.Epoch > attempt:
		return Ahead
	case r.Epoch < attempt:
		return Late
	case run.Epoch == r.Epoch && r.Sequence <= run.Sequence:
		return Known
	}
	return Current
}

// begin gives the run in an attempt. What the attempt before it said of itself ends with it; what adds up stays.
func begin(run v1alpha1.RunStatus, epoch int64) v1alpha1.RunStatus {
	if run.Epoch == epoch {
		return run
	}
	run.Epoch, run.Sequence = epoch, 0
	run.Report, run.Fault, run.Question, run.Final = nil, nil, nil, nil
	run.Connected, run.ConnectionTransitionTime, run.Replica = nil, nil, ""
	return run
}

func apply(run *v1alpha1.RunStatus, feature string, r protocol.Report) {
	switch {
	case r.Status != nil:
		applyStatus(run, *r.Status, r.Time)
	case r.Checkpoint != nil:
		add(run, naming.Checkpoint(feature, r.Checkpoint.Sequence), checkpointSpec(feature, "", r), summaryMessage(*r.Checkpoint))
	case r.Request != nil:
		applyRequest(run, *r.Request, r.Time)
	case r.Planned != nil:
		run.Plan = proposed(*r.Planned)
	case r.Final != nil:
		run.Final = &v1alpha1.FinalReport{
			Epoch: r.Epoch, Outcome: Clean(r.Final.Outcome, maxName), Reason: Clean(r.Final.Reason, maxName),
			Message: Clean(r.Final.Message, maxMessage), Head: r.Final.Head, Gate: r.Final.Gate, Task: Clean(r.Final.Task, maxName), ProvedBy: r.Final.ProvedBy,
			Paths: deliveredPaths(r.Final.Paths), PathCount: min(r.Final.PathCount, maxNumber), TaskFailures: int32(r.Final.TaskFailures), //nolint:gosec // validated
		}
		if r.Final.Outcome == protocol.OutcomeParked { // whatever the last status was that came
			run.Question = question(r.Final.Question)
		}
		if f := r.Final.Failure; f != nil {
			run.Final.Failure = &v1alpha1.CallFailure{Class: f.Class, Cause: Clean(f.Cause, protocol.MaxCause), Calls: int64(f.Calls)}
		}
	}
}

func applyLate(run *v1alpha1.RunStatus, feature string, r protocol.Report) {
	switch {
	case r.Checkpoint != nil:
		add(run, naming.Checkpoint(feature, r.Checkpoint.Sequence), checkpointSpec(feature, "", r), summaryMessage(*r.Checkpoint))
	case r.Request != nil:
		applyRequest(run, *r.Request, r.Time)
	case r.Planned != nil:
		run.Plan = proposed(*r.Planned)
	}
}

// Adopt returns the run after a Checkpoint that exists and whose report is not at hand.
func Adopt(run v1alpha1.RunStatus, c *v1alpha1.Checkpoint) v1alpha1.RunStatus {
	next := *run.DeepCopy()
	add(&next, c.Name, c.Spec, specMessage(c.Spec))
	return next
}

// add counts a checkpoint whose number is above all that were counted.
func add(run *v1alpha1.RunStatus, name string, spec v1alpha1.CheckpointSpec, message string) {
	if spec.Sequence <= run.CheckpointSequence {
		return
	}
	run.CheckpointSequence = spec.Sequence
	run.Checkpoints.Total++
	if spec.Rollback != nil {
		run.Rollbacks = rolledBack(run, name, spec, message)
	}
	switch {
	case !spec.Capture.Settled:
		// It counts as neither: what was judged may never have been there.
	case spec.Verdict == v1alpha1.VerdictValid:
		run.Checkpoints.Valid++
		if spec.Action != v1alpha1.ActionReverted { // else a rollback gave it up
			run.LastValidCheckpoint = name
		}
	case spec.Verdict == v1alpha1.VerdictInvalid:
		run.Checkpoints.Invalid++
	}
	run.LastCheckpoint = &v1alpha1.CheckpointSummary{Name: name, Verdict: spec.Verdict, Action: spec.Action, Reason: spec.Reason, Message: message}
}

// rolledBack counts the rollback after a checkpoint.
func rolledBack(run *v1alpha1.RunStatus, name string, spec v1alpha1.CheckpointSpec, message string) *v1alpha1.RollbackStatus {
	var next v1alpha1.RollbackStatus
	if run.Rollbacks != nil {
		next = *run.Rollbacks
	}
	b := spec.Rollback
	next.Total++
	switch b.Cause {
	case v1alpha1.RollbackBySupervision:
		next.Supervision++
	case v1alpha1.RollbackByRequest:
		next.Request++
	case v1alpha1.RollbackByViolation:
		next.Violation++
	}
	to := cmp.Or(b.To, run.LastValidCheckpoint)
	if b.ToBase {
		to = ""
	}
	next.Last = v1alpha1.LastRollback{
		RollbackTime: spec.CaptureTime, Cause: b.Cause, Before: name, To: to, Reason: plain.CutRunes(cmp.Or(b.Reason, message), maxText),
	}
	return &next
}

func applyRequest(run *v1alpha1.RunStatus, r protocol.RequestReport, at time.Time) {
	if slices.ContainsFunc(run.Requests, func(o v1alpha1.ObservedRequest) bool { return o.ID == r.ID }) {
		return
	}
	state := "Failed"
	if r.OK {
		state = "Done"
	}
	run.Requests = append(run.Requests, v1alpha1.ObservedRequest{ID: r.ID, State: state, Message: Clean(r.Message, maxMessage), ObservedTime: apiTime(at)})
	if extra := len(run.Requests) - maxRequests; extra > 0 {
		run.Requests = slices.Clone(run.Requests[extra:])
	}
}

// Connect notes that a replica holds the connection of an attempt's watchdog.
func Connect(run v1alpha1.RunStatus, epoch int64, replica string, now time.Time) v1alpha1.RunStatus {
	next := begin(*run.DeepCopy(), epoch)
	if next.Connected == nil || !*next.Connected {
		next.Connected, next.ConnectionTransitionTime = new(true), apiTime(now)
	}
	next.Replica = replica
	return next
}

// Disconnect records that the connection broke, unless another replica or attempt has one by now. After the final report of an attempt
// nobody waits for its watchdog.
func Disconnect(run v1alpha1.RunStatus, epoch int64, replica string, now time.Time) v1alpha1.RunStatus {
	next := *run.DeepCopy()
	if next.Epoch != epoch || next.Final != nil && next.Final.Epoch == epoch || next.Replica != replica || next.Connected == nil || !*next.Connected {
		return next
	}
	next.Connected, next.ConnectionTransitionTime = new(false), apiTime(now)
	return next
}

// apiTime is a time as the API stores it: whole seconds.
func apiTime(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &at
}

// Clean makes a text fit for a status: one line, only visible characters, bounded in characters.
func Clean(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !visible(r):
			return '\uFFFD'
		}
		return r
	}, text)
	return plain.CutRunes(text, limit)
}
