// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

const (
	// stopGrace is how long an orderly end is waited for before the Job is deleted. The pod then has its own grace
	// period, in which the watchdog takes a last checkpoint.
	stopGrace = time.Minute
	// heartbeatLimit after which a broken connection is said to be missing (design: 30 s).
	heartbeatLimit = 30 * time.Second
	// leastRecheck keeps a decision that is due from being asked for in a busy loop.
	leastRecheck = time.Second
	// attendRecheck is how often a running attempt is looked at without any event.
	attendRecheck = 20 * time.Second
)

// Next decides what happens next. It changes nothing that it is given, and the same facts at the same time lead to the
// same decision.
func Next(o Observed, now time.Time) Decision {
	c := &course{o: o, now: now, m: o.Memory.clone()}
	c.adopt()
	c.pin()
	c.conclude()
	c.rollUp()
	c.decide()
	if !c.d.Needs.Outdates() {
		c.settleLocks()
	}
	if c.d.Needs.Outdates() {
		return Decision{Memory: o.Memory.clone(), Needs: c.d.Needs}
	}
	if o.JobMade {
		c.d.DeleteJobs, c.d.DeletePods, c.d.KeepUp = nil, nil, false
	}
	c.answerRequests()
	c.tellStuck()
	c.describe()
	c.d.Memory = c.m
	c.d.Events = changes(o.Memory, c.m, c.fate)
	return c.d
}

// course is one decision on its way.
type course struct {
	o   Observed
	now time.Time
	// m becomes the new status.
	m Memory
	d Decision
	// at is where the Feature stands; everything that people read is derived from it.
	at standing
	// fate is why the pod of a lost attempt ended, as far as it is known.
	fate string
	// keepLocks says that the work goes on by itself or has to be delivered: locks that were held for it stay.
	keepLocks bool
	// errand says that the run that is about to start is one.
	errand bool
	// stuck is a pod that should be gone and is not; nil where there is none.
	stuck *Pod
	// lost says that a lock was taken away from the current attempt.
	lost bool
	// granted holds the ids of requests that the wish for a new attempt rests on: they are answered once it exists.
	granted map[string]bool
}

// standing is where a Feature stands, in one phase, reason and message.
type standing struct {
	phase   Phase
	reason  string
	message string
	// stalled is true when only a person can help.
	stalled bool
	// reconciling is true while the controller still works on the spec itself. A Feature that is accepted is
	// reconciled: the rest is its work, which takes hours and which no GitOps sync shall wait for.
	reconciling bool
}

// decide takes the first of the four situations that a Feature can be in.
func (c *course) decide() {
	if !c.deleting() {
		c.sweep()
	}
	switch {
	case c.deleting():
		c.endForGood()
	case c.delivered():
		c.at = c.deliveredStanding()
		c.rest()
	case c.active():
		c.attend()
	default:
		c.goOn()
	}
}

func (c *course) deleting() bool { return !c.o.Spec.DeletedAt.IsZero() }

// delivered is for ever: neither a later report nor a change of the spec takes it back.
func (c *course) delivered() bool {
	f := c.final()
	return c.o.Memory.Phase == Delivered || f != nil && f.Outcome == contract.OutcomeDelivered
}

// attend looks after an attempt that has not ended.
func (c *course) attend() {
	job := c.m.Job
	switch {
	case job.Errand:
		c.at = c.remembered()
		c.d.KeepUp = true
		c.wake(c.now.Add(attendRecheck))
	case c.m.Phase == Failed, job.Run == RunAgent && c.deadlineOver():
		c.stop(c.deadlineStanding())
	case c.lockLost():
		c.stop(c.lockLostStanding())
	case job.Run == RunAgent && c.exposed():
		// Whatever its orders are, an agent that may talk to anybody does not go on. The facts are looked at again first: a
		// cache that lags shall end nobody's work.
		if c.live() {
			c.stop(c.exposedStanding())
		}
	case c.o.Spec.Suspend:
		c.stop(standing{phase: Running, reason: ReasonSuspending, message: "The watchdog takes a last checkpoint, then the pod ends."})
	default:
		job.StopRequestedAt = time.Time{}
		c.at = c.runningStanding()
		c.meter(c.at.phase == AwaitingInput || c.at.phase == Blocked) // a person is waited for
		c.d.KeepUp = true
		c.lock()
		if job.Run == RunAgent && c.o.Spec.Deadline > 0 && job.WaitingSince.IsZero() {
			c.wake(c.now.Add(c.o.Spec.Deadline - c.activeTime() - c.worked()))
		}
		// No event tells that a pod is refused, that a volume stays away, or that a replica died with its connections.
		c.wake(c.now.Add(attendRecheck))
	}
}

// stop waits for the orderly end that the orders ask for, and deletes the Job when it does not come.
func (c *course) stop(at standing) {
	c.at = at
	job := c.m.Job
	if job.StopRequestedAt.IsZero() {
		job.StopRequestedAt = c.now
	}
	if limit := job.StopRequestedAt.Add(stopGrace); c.someoneWorks() && c.now.Before(limit) {
		c.wake(limit)
		return
	}
	c.remove(c.o.Jobs, c.o.Pods)
}

// rest is for a Feature that wants nothing more: what is left of its last attempt ends by itself, or is ended.
func (c *course) rest() {
	switch {
	case c.active():
		c.stop(c.at)
	case c.someoneWorks() && c.m.Job != nil:
		if limit := c.m.Job.EndedAt.Add(stopGrace); c.now.Before(limit) {
			c.wake(limit)
		} else {
			c.remove(c.o.Jobs, c.o.Pods)
		}
	}
	c.expire()
}

// expire asks for the Feature's own deletion when its time to live is over.
func (c *course) expire() {
	ttl := c.o.Spec.TTLAfterFinished
	if ttl == nil || c.o.Memory.FinishedAt.IsZero() || c.at.phase != Delivered && c.at.phase != Failed {
		return
	}
	if at := c.o.Memory.FinishedAt.Add(*ttl); c.now.Before(at) {
		c.wake(at)
		return
	}
	if c.live() {
		c.d.DeleteFeature = true
	}
}

// endForGood ends everything and lets the Feature go when no pod is left.
func (c *course) endForGood() {
	phase := c.m.Phase
	if phase == "" {
		phase = Pending
	}
	c.at = standing{phase: phase, reason: ReasonDeleting, message: "The Feature is being deleted: its pods end first.", reconciling: true}
	if c.active() && c.m.Job.StopRequestedAt.IsZero() {
		c.m.Job.StopRequestedAt = c.now
	}
	if !c.anyLeft() {
		if c.live() {
			c.d.Release = true
		}
		return
	}
	if limit := c.o.Spec.DeletedAt.Add(stopGrace); c.someoneWorks() && c.now.Before(limit) {
		c.wake(limit)
		return
	}
	c.remove(c.o.Jobs, c.o.Pods)
}

// wake asks for another decision at a time at the latest.
func (c *course) wake(at time.Time) {
	after := max(at.Sub(c.now), leastRecheck)
	if c.d.Recheck == 0 || after < c.d.Recheck {
		c.d.Recheck = after
	}
}

// live reports whether the facts are live, and asks for live ones when they are not.
func (c *course) live() bool {
	if !c.o.Live {
		c.need(NeedLive)
	}
	return c.o.Live
}

// turn reports whether the Feature may start as far as others that start at the same time are concerned, and asks for
// its turn when it has to wait for it.
func (c *course) turn() bool {
	if c.o.Serial && !c.o.Turn {
		c.need(NeedTurn)
		return false
	}
	return true
}

func (c *course) need(n Need) { c.d.Needs = first(c.d.Needs, n) }
