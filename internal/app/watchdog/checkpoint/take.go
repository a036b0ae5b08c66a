// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// judged is a captured and checked workspace.
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

// slowJudging is the duration from which on a check is reported as slow: the time in the requirements. The check still continues to its end.
const slowJudging = 5 * time.Second

// Take completes what a crash interrupted, and takes a checkpoint. An error means that nothing was recorded, or that the intent is in the
// journal and a restarted watchdog carries it out.
func (s *Service) Take(ctx context.Context, o Occasion) (Taken, error) {
	if err := s.ready(ctx, &o); err != nil {
		return Taken{}, err
	}
	return s.take(ctx, o)
}

// take captures, checks, records and acts.
func (s *Service) take(ctx context.Context, o Occasion) (Taken, error) {
	j, err := s.capture(ctx, o)
	t := Taken{Snapshot: j.snapshot, Judgement: j.judgement}
	if err != nil {
		return t, err
	}
	if err = s.aim(ctx, o, &j); err == nil {
		t.Back = j.wentBack()
		t.Intent, err = s.plan(ctx, o, j)
	}
	if err == nil && t.Intent != nil {
		err = s.recorder.record(ctx, *t.Intent)
	}
	if o.Frozen() && !o.Hold && !steps.Fatal(err) {
		// What was taken back is taken back, whether the freeze was perfect or not.
		if err := o.Freezer.Thaw(ctx); err != nil {
			s.Log.WarnContext(ctx, "Thawing after a restore", "error", err.Error())
		}
	}
	return t, err
}

// capture looks at the workspace. The agent is frozen afterwards only where something is to be taken back, or the pod
// is about to end.
func (s *Service) capture(ctx context.Context, o Occasion) (judged, error) {
	j, err := s.look(ctx, o)
	if o.Frozen() && !o.Hold && (err != nil || j.consequence.Restore == supervise.RestoreNothing) {
		if thawing := o.Freezer.Thaw(ctx); err == nil {
			err = thawing
		}
	}
	if err == nil {
		err = s.Probe.After("captured")
	}
	return j, err
}

// movingTries is how often a workspace is captured again in which a path moved, before the checkpoint counts as failed.
const movingTries = 2

// moves says that a path of the workspace moved while it was captured: most likely it rests a moment later. A freeze that
// failed would only fail again, after its whole timeout, and a pod that has to end has no time.
func (o Occasion) moves(j judged) bool {
	f := o.freeze()
	return !j.snapshot.Settled && o.Doubt == "" && !o.Hold && (o.Freezer == nil || f.Flaw == nil && f.Still)
}

// keepsFrozen: a restore may follow, or the pod is about to end.
func (o Occasion) keepsFrozen() bool {
	e := o.Terms.Policy.Execution
	return o.Freezer != nil && (o.Hold || e.Strategy == policy.StrategyShadow || e.RevertOnViolation != policy.RevertNone)
}

// look captures and checks. A capture that a restore follows needs a frozen agent, so that nothing it writes in between is lost: if the
// first look went without a freeze, there is a second one.
func (s *Service) look(ctx context.Context, o Occasion) (judged, error) {
	j, err := s.lookOnce(ctx, o, o.Hold || o.AtOnce)
	for tries := 0; err == nil && tries < movingTries && o.moves(j); tries++ {
		if o.Frozen() {
			if err := o.Freezer.Thaw(ctx); err != nil {
				break
			}
		}
		j, err = s.lookOnce(ctx, o, o.Hold || o.AtOnce)
	}
	if err != nil || j.consequence.Restore == supervise.RestoreNothing || o.Freezer == nil || o.Frozen() {
		return j, err
	}
	return s.lookOnce(ctx, o, true)
}

func (s *Service) lookOnce(ctx context.Context, o Occasion, atOnce bool) (judged, error) {
	still := workspace.Still{AtOnce: atOnce, KeepFrozen: o.keepsFrozen(), Limits: limitsOf(o.Terms.Policy.Changes)}
	if o.Freezer != nil {
		still.Freezer = o.Freezer
	}
	changed := s.Workspace.Engine().Changed()
	snapshot, err := s.Workspace.Engine().Capture(ctx, still)
	if err != nil {
		return judged{}, fmt.Errorf("capture the workspace: %w", err)
	}
	switch flaw := o.freeze().Flaw; {
	case o.Doubt != "":
		snapshot.Settled, snapshot.Reason = false, o.Doubt
	case snapshot.Frozen && flaw != nil:
		snapshot.Settled, snapshot.Reason = false, flaw.Error()
	}
	started := s.Now()
	judgement, err := s.Judge.Snapshot(ctx, snapshot, o.Terms)
	if err != nil {
		return judged{}, err
	}
	j := judged{snapshot: snapshot, judgement: judgement, judgeTime: s.Now().Sub(started), changed: changed}
	s.tellSlow(j.judgeTime)
	j.consequence = supervise.Act(j.judgement, o.Terms.Policy, snapshot.Settled)
	if snapshot.Incomplete && j.consequence.Promote {
		// Not even an audit promotes what was never read.
		j.consequence = supervise.Consequence{Action: protocol.ActionHeld}
	}
	return j, nil
}

// limitsOf a policy, for what a capture may read and store.
func limitsOf(c policy.Changes) workspace.Limits {
	return workspace.Limits{MaxFileSize: c.MaxFileSize, MaxBytes: c.MaxWorkspaceSize, MaxFiles: c.MaxWorkspaceFiles}
}

// tellSlow reports a check that took long.
func (s *Service) tellSlow(took time.Duration) {
	problem := ""
	if took > slowJudging {
		problem = fmt.Sprintf("checking the last checkpoint took more than %s; the watchdog checked every path all the same", slowJudging)
	}
	s.Health.Tell(health.Judge, problem)
}
