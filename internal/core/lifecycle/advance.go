// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Rechecks are for changes that no event tells of.
const (
	// refusalRecheck covers prompts in ConfigMaps, which are not watched, and what gateways said too long ago.
	refusalRecheck = 15 * time.Second
	// obstacleRecheck covers services that get an address, quotas that are raised, and objects that get out of the way.
	obstacleRecheck = 5 * time.Second
	// capacityRecheck covers an event that was missed; normally the end of another Feature wakes this one.
	capacityRecheck = time.Minute
)

// advance is for a Feature without a current attempt: it finds out which run it wants next, and starts it when the way is free and the last
// one has left no pod.
func (p *plan) advance(s situation) {
	next := s.wantedUnderLocks()
	p.lost, p.granted, p.refusal = next.lost, next.granted, next.refusal
	if next.unsure {
		p.live(s)
	}
	exposed := next.run.untrusted() && s.o.Isolation.forbids()
	errand := (next.run == "" || next.run == RunGate || s.o.Spec.suspended() || exposed && s.m.Attempt > 0) && s.errandWaits()
	if !next.again.IsZero() {
		p.wake(next.again)
	}
	// A Feature that waits for a user stays ReadyToMerge under a policy that suspends it, and keeps its area and its locks; who is suspended by itself
	// lets others pass. One whose agent waits for an answer is in the middle of its work.
	waits := next.run == "" && (next.at.phase == ReadyToMerge && !s.o.Spec.Suspend || next.at.phase == AwaitingInput)
	p.keepLocks = waits || next.run != "" && !s.o.Spec.suspended()
	switch {
	case next.run == "" && !errand:
		p.rest(s, next.at)
		return
	case s.o.Refusal != nil:
		p.at = refusedSummary(s.o.Refusal)
		p.keepLocks = false
		p.wake(s.now.Add(refusalRecheck))
	case s.o.Spec.suspended() && !errand:
		p.rest(s, suspendedSummary(s.o.Spec))
	case errand:
		at := next.at
		switch {
		case s.o.Spec.suspended():
			at = suspendedSummary(s.o.Spec)
		case exposed:
			at = exposedSummary(s.o.Isolation)
		}
		p.runErrand(s, next, at)
	default:
		p.startWanted(s, next, exposed)
	}
}

// startWanted starts the run that is wanted, unless something is in the way.
func (p *plan) startWanted(s situation, next nextRun, exposed bool) {
	p.at = next.at
	after := s.earliest(next, next.run, false)
	switch {
	case s.now.Before(after):
		p.wake(after)
		if s.m.Unserved != nil && s.m.Unserved.Class == protocol.FailurePolicy {
			p.wake(s.now.Add(refusalRecheck)) // nothing wakes this Feature when what a gateway said is too old
		}
	case s.o.Obstacle != nil:
		at := refusedSummary(s.o.Obstacle)
		at.reconciling = false
		p.at = at
		p.wake(s.now.Add(obstacleRecheck))
	case exposed:
		p.at = exposedSummary(s.o.Isolation)
		p.wake(s.now.Add(networkRecheck))
	case next.run == RunAgent && s.o.Capacity.full():
		p.at = summary{phase: Pending, reason: ReasonAtCapacity, message: fmt.Sprintf(
			"The policy lets %d agents of this project run at once: this Feature waits for one to end (higher priority first, then older).%s",
			s.o.Capacity.Limit, waitForPeople(s.o.Capacity.Waiting))}
		p.wake(s.now.Add(capacityRecheck))
	case next.run == RunAgent && s.o.Capacity.totalReached():
		p.at = summary{phase: Pending, reason: ReasonAtTotalCapacity, message: fmt.Sprintf(
			"The policy lets %d agents of all projects run at once (capacity.maxRunningTotal): this Feature waits for one to end. The projects take turns by the age of what waits.",
			s.o.Capacity.Total)}
		p.wake(s.now.Add(capacityRecheck))
	case next.run == RunAgent && !p.disjoint(s):
	default:
		p.begin(s, next, next.run, false)
	}
	if p.needs != "" && p.at.phase == Preparing && !s.atWork() {
		// Should that fact not be had, the Feature is not at work: the next look still asks whether it has to wait for others.
		p.at.phase = Pending
	}
}

// waitForPeople names the Features that have a place and need a user; empty if there is none.
func waitForPeople(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" Feature %s has a place and waits for a user: see its conditions.", names[0])
	default:
		return fmt.Sprintf(" Features %s have a place and wait for a user: see their conditions.", strings.Join(plain.CutList(names, 3), ", "))
	}
}

// begin asks for the Job of the next attempt once no Job and no pod of any earlier one is left.
func (p *plan) begin(s situation, next nextRun, run RunKind, errand bool) {
	switch {
	case len(s.o.Jobs)+len(s.o.Pods) > 0 && s.m.Job != nil:
		p.endAfter(s, s.m.Job.EndedAt)
	case len(s.o.Jobs)+len(s.o.Pods) > 0:
		p.remove(s, s.o.Jobs, s.o.Pods)
	case p.live(s) && p.lock(s, next, errand):
		p.need(NeedJob)
		p.start = &Start{Attempt: s.m.Attempt + 1, Run: run}
		if run == RunAgent {
			p.start.Mode = s.o.Spec.Mode
		}
		if run == RunGate {
			p.start.Gate = next.gate
		}
	}
}

// runErrand starts an errand once where the Feature stands is written: it is what the run leaves as it is.
func (p *plan) runErrand(s situation, next nextRun, at summary) {
	p.at, p.errand = at, true
	after := s.earliest(next, RunSeal, true)
	switch was := s.remembered(); {
	case s.now.Before(after):
		p.wake(after)
	case s.o.Obstacle != nil:
		p.wake(s.now.Add(obstacleRecheck))
	case was.phase != at.phase || was.reason != at.reason:
		p.wake(s.now)
	default:
		p.begin(s, next, RunSeal, true)
	}
}
