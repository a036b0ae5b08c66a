// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"
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

// plan is what to do about a situation. Its methods note something; what is noted is read when all is planned.
type plan struct {
	// at is where the Feature stands with this plan; everything that people read is derived from it.
	at summary
	// needs is the fact that is missing.
	needs Need
	start *Start
	// order to the current attempt.
	order order
	// waits says that the agent of a continuing attempt waits for a user.
	waits bool
	// ensureDependencies asks for what a running attempt depends on.
	ensureDependencies bool
	// errand says that the run that is about to start is one.
	errand bool
	// keepLocks says that the work continues by itself or has to be delivered: its locks stay.
	keepLocks bool
	// lost says that a lock was taken away from the current attempt.
	lost bool
	// locks follow from the rest of the plan.
	locks lockPlan
	// granted says that the run that is wanted next rests on requests to retry: they are answered once it exists. refusal
	// answers them otherwise; empty where they stay open.
	granted bool
	refusal string

	deleteJobs, deletePods []Object
	deleteFeature, release bool
	// wakes are the times at which to decide again.
	wakes []time.Time
}

// order says which orders the current attempt gets.
type order int

const (
	_ order = iota // nothing changes
	// orderWork takes back that it shall end.
	orderWork
	// orderStop tells it to end.
	orderStop
)

// planFor plans what to do about a situation.
func (s situation) planFor() plan {
	var p plan
	if len(s.strangers) > 0 && p.live(s) {
		p.remove(s, nil, s.strangers)
	}
	if s.active() && s.gone() {
		p.live(s) // Its end is only noted on live facts.
	}
	if !s.deleting() {
		jobs, pods := s.leftovers()
		p.remove(s, jobs, pods)
	}
	switch {
	case s.deleting():
		p.endForGood(s)
	case s.delivered():
		p.rest(s, s.deliveredSummary())
	case s.active():
		p.attend(s)
	default:
		p.advance(s)
	}
	if at, ok := s.heartbeatDue(); ok {
		p.wake(at)
	}
	_, due := s.stuckPod()
	p.wake(due...)
	return s.withLocks(p)
}

// need notes the fact that is missing. There is one: on a cache only live facts are missing, and each of the others is what the next one waits for.
func (p *plan) need(n Need) { p.needs = n }

// live reports whether the facts are live, and asks for live ones when they are not.
func (p *plan) live(s situation) bool {
	if !s.o.Live {
		p.need(NeedLive)
	}
	return s.o.Live
}

// wake asks for another decision at these times at the latest.
func (p *plan) wake(at ...time.Time) { p.wakes = append(p.wakes, at...) }

// remove asks for the deletion of what is not being deleted already.
func (p *plan) remove(s situation, jobs []Job, pods []Pod) {
	for _, j := range jobs {
		if !j.Deleting && p.live(s) {
			p.deleteJobs = include(p.deleteJobs, Object{Name: j.Name, UID: j.UID})
		}
	}
	for _, pod := range pods {
		if !pod.Deleting && p.live(s) {
			p.deletePods = include(p.deletePods, Object{Name: pod.Name, UID: pod.UID})
		}
	}
}

func include(list []Object, o Object) []Object {
	if slices.Contains(list, o) {
		return list
	}
	return append(list, o)
}

// recheck is when to decide again without any event; 0 is never.
func (p plan) recheck(now time.Time) time.Duration {
	if len(p.wakes) == 0 {
		return 0
	}
	return max(slices.MinFunc(p.wakes, time.Time.Compare).Sub(now), leastRecheck)
}

// memory is what the status shall say, but for its conditions.
func (p plan) memory(s situation) Memory {
	m := s.m.clone()
	switch {
	case m.Job == nil:
	case p.order == orderStop && m.Job.StopRequestedAt.IsZero():
		m.Job.StopRequestedAt = s.now
	case p.order == orderWork:
		*m.Job = s.metered(p.waits)
		m.Job.StopRequestedAt = time.Time{}
	}
	m.Locks = slices.Clone(p.locks.stay)
	m.Requests = s.answerRequests(p)
	m.Deliveries, m.Heeds = s.deliveries(), s.heeds()
	m.Phase = p.at.phase
	switch {
	case m.Phase != Delivered && m.Phase != Failed:
		m.FinishedAt = time.Time{}
	case m.FinishedAt.IsZero():
		m.FinishedAt = s.now
	}
	return m
}
