// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"
)

// attend looks after an attempt that has not ended.
func (p *plan) attend(s situation) {
	job := *s.m.Job
	agent := job.Run == RunAgent
	if job.Errand {
		p.at = s.remembered()
		p.ensureDependencies = true
		p.wake(s.now.Add(attendRecheck))
		return
	}
	if s.m.Phase == Failed || agent && s.deadlineOver() {
		p.stop(s, s.deadlineSummary())
		return
	}
	if orphan := s.orphan(); orphan != nil {
		// It is a leftover, and removed as one; its end is that of the attempt.
		p.at = summary{phase: Preparing, reason: ReasonPodOrphaned, message: fmt.Sprintf(
			"Pod %s lost its Job (kubectl delete --cascade=orphan does that, or a change of metadata.ownerReferences), so its watchdog cannot report. "+
				"Tidewaiter ends the pod, and attempt %d follows from the last valid checkpoint.", orphan.Name, s.m.Attempt+1)}
		return
	}
	lost, known := s.lockLost()
	switch p.lost = lost; {
	case !known:
		p.live(s)
	case lost:
		p.stop(s, s.lockLostSummary())
	case job.Run.untrusted() && s.o.Isolation.forbids():
		// An agent whose network is open does not continue, whatever its orders are. Live facts come first, so that a cache that
		// lags ends no agent's work.
		if p.live(s) {
			p.stop(s, exposedSummary(s.o.Isolation))
		}
	case s.o.Spec.suspended():
		p.stop(s, suspendingSummary(s.o.Spec))
	default:
		p.carryOn(s, s.runningSummary())
	}
}

// carryOn lets an attempt work.
func (p *plan) carryOn(s situation, at summary) {
	p.at, p.order, p.ensureDependencies = at, orderWork, true
	if !s.m.Job.StopRequestedAt.IsZero() {
		p.live(s) // A cache that lags does not take back that it shall end.
	}
	p.waits = at.phase == AwaitingInput || at.phase == Blocked || s.unstarted() // for a user, or for a node and its volumes
	p.lock(s, nextRun{}, false)
	job := s.metered(p.waits)
	if job.Run == RunAgent && s.o.Spec.Deadline > 0 && job.WaitingSince.IsZero() {
		p.wake(s.now.Add(s.o.Spec.Deadline - s.activeTime() - job.worked(s.now)))
	}
	// No event tells that a pod is refused, that a volume stays away, or that a replica died with its connections.
	p.wake(s.now.Add(attendRecheck))
}

// stop waits for the orderly end that the orders ask for, and deletes the Job when it does not come. Under a policy that cannot be read there
// are no orders: the Job is deleted at once, and the signal that ends its pod asks the watchdog for the last checkpoint.
func (p *plan) stop(s situation, at summary) {
	p.at, p.order = at, orderStop
	if s.o.Refusal != nil && s.o.Refusal.Reason == ReasonPolicyInvalid {
		p.remove(s, s.o.Jobs, s.o.Pods)
		return
	}
	if s.m.Job.StopRequestedAt.IsZero() {
		// That it shall end is written first, which wakes the Feature: a process that dies after it ended the pod must not leave a pod that looks lost.
		return
	}
	p.endAfter(s, s.m.Job.StopRequestedAt)
}

// endAfter deletes every Job and pod, but gives one that works its grace from a time on.
func (p *plan) endAfter(s situation, since time.Time) {
	if limit := since.Add(stopGrace); s.o.someoneWorks() && s.now.Before(limit) {
		p.wake(limit)
		return
	}
	p.remove(s, s.o.Jobs, s.o.Pods)
}

// rest is for a Feature that wants nothing more and stands where it stands: what is left of its last attempt ends by itself, or the controller ends it.
func (p *plan) rest(s situation, at summary) {
	p.at = at
	switch {
	case s.active():
		p.stop(s, at)
	case s.o.someoneWorks() && s.m.Job != nil:
		p.endAfter(s, s.m.Job.EndedAt)
	}
	p.expire(s, at)
}

// expire asks for the Feature's own deletion when its time to live is over.
func (p *plan) expire(s situation, at summary) {
	ttl, finished := s.o.Spec.TTLAfterFinished, s.o.Memory.FinishedAt
	if ttl == nil || finished.IsZero() || at.phase != Delivered && at.phase != Failed {
		return
	}
	if over := finished.Add(*ttl); s.now.Before(over) {
		p.wake(over)
		return
	}
	p.deleteFeature = p.live(s)
}

// endForGood ends everything and lets the Feature go when no pod is left.
func (p *plan) endForGood(s situation) {
	phase := s.m.Phase
	if phase == "" {
		phase = Pending
	}
	p.at = summary{phase: phase, reason: ReasonDeleting, message: "Tidewaiter is deleting the Feature: its pods end first.", reconciling: true}
	if s.active() {
		p.order = orderStop
	}
	if !s.o.anyLeft() {
		p.release = p.live(s)
		return
	}
	p.endAfter(s, s.o.Spec.DeletedAt)
}
