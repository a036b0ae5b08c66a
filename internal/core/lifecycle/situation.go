// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// situation is what is observed and remembered of a Feature at one time. Its methods are questions. It is passed by
// value, so that none of them can change it.
type situation struct {
	o   Observed
	now time.Time
	// m is what is remembered, with what the facts add to it: see situate.
	m Memory
	// strangers are pods of the current Job that must not speak for its attempt. While the facts are not live they are all
	// its pods, unless it is known already which one speaks.
	strangers []Pod
	// granted are the requests to retry on which the run rested that was wanted before a seal Job was adopted just now. Those
	// that the Job does not answer stay open.
	granted []string
	// fate is why the pod of a lost attempt ended, as far as it is known.
	fate string
}

func (s situation) deleting() bool { return !s.o.Spec.DeletedAt.IsZero() }

// delivered is for ever: neither a later report nor a change of the spec takes it back.
func (s situation) delivered() bool {
	f := s.final()
	return s.o.Memory.Phase == Delivered || f != nil && f.Outcome == protocol.OutcomeDelivered
}

// active reports whether there is an attempt whose end was not noted.
func (s situation) active() bool {
	return s.m.Attempt > 0 && s.m.Job != nil && s.m.Job.EndedAt.IsZero()
}

// atWork reports whether the Feature counted as at work when its status was written.
func (s situation) atWork() bool {
	switch s.o.Memory.Phase {
	case Preparing, Running, AwaitingInput:
		return true
	default:
		return false
	}
}

// final is the final report of the current attempt; nil before it.
func (s situation) final() *Final {
	if s.m.Attempt == 0 || s.o.Run == nil || s.o.Run.Final == nil || s.o.Run.Final.Epoch != s.m.Attempt {
		return nil
	}
	return s.o.Run.Final
}

// report is what the watchdog says of the current attempt; nil before it says anything.
func (s situation) report() *Run {
	if s.o.Run == nil || s.o.Run.Epoch != s.m.Attempt || s.m.Attempt == 0 {
		return nil
	}
	return s.o.Run
}

// job is the Job of the current attempt; nil when it is not there.
func (s situation) job() *Job {
	for i := range s.o.Jobs {
		if s.o.Jobs[i].Attempt == s.m.Attempt {
			return &s.o.Jobs[i]
		}
	}
	return nil
}

// pod is the one pod of the current attempt; nil when it is not there.
func (s situation) pod() *Pod {
	for i := range s.o.Pods {
		if s.m.Job != nil && s.m.Job.PodUID != "" && s.o.Pods[i].UID == s.m.Job.PodUID {
			return &s.o.Pods[i]
		}
	}
	return nil
}

// gone reports whether the attempt can do nothing more: its pod ended or is not there, or there never will be one.
func (s situation) gone() bool {
	if s.m.Job.PodUID != "" {
		p := s.pod()
		return p == nil || p.Ended
	}
	job := s.job()
	if job == nil {
		return true
	}
	if !job.Ended {
		return false
	}
	for _, p := range s.o.Pods {
		if p.JobUID == job.UID && !p.Ended {
			return false
		}
	}
	return true
}

// problem is what keeps the current attempt from continuing; nil when nothing does. What is nearest to the cause comes
// first: without a volume there is no pod, without a pod no report.
func (s situation) problem() *Problem {
	if job := s.job(); job != nil && job.Rejected != "" && s.pod() == nil {
		return &Problem{Reason: ReasonPodRejected, Message: job.Rejected}
	}
	if p := s.pod(); s.o.Volumes != nil && (p == nil || !p.Started) {
		return s.o.Volumes
	}
	if p := s.podProblem(); p != nil {
		return p
	}
	if r := s.report(); r != nil && r.Fault != nil {
		return r.Fault
	}
	return nil
}

// podProblem keeps the current pod's containers from running; nil when nothing does.
func (s situation) podProblem() *Problem {
	if p := s.pod(); p != nil {
		return p.Problem
	}
	return nil
}

// orphan is the pod of the current attempt while it runs without its Job, and was not asked to end; nil where there is none.
func (s situation) orphan() *Pod {
	p, job := s.pod(), s.job()
	if p == nil || p.Ended || p.Deleting || job != nil && p.JobUID == job.UID {
		return nil
	}
	return p
}

// activeTime is the running time of the attempts that ended.
func (s situation) activeTime() time.Duration {
	return time.Duration(s.m.ActiveSeconds) * time.Second
}

// deadlineOver reports whether the running time is over the deadline.
func (s situation) deadlineOver() bool {
	if s.o.Spec.Deadline <= 0 {
		return false
	}
	running := s.activeTime()
	if s.active() && s.m.Job.Run == RunAgent {
		running += s.m.Job.worked(s.now)
	}
	return running >= s.o.Spec.Deadline
}

// remembered is where the Feature stood when the status was written last.
func (s situation) remembered() summary {
	was := s.o.Memory.Condition(ConditionSucceeded)
	return summary{
		phase: s.o.Memory.Phase, reason: was.Reason, message: was.Message,
		stalled: s.o.Memory.Condition(ConditionStalled).Status == True,
	}
}

// leftovers are Jobs and pods that are not of the current attempt's Job: they must be gone before anything new starts, and must not run
// next to a current attempt either. A pod that lost its Job is one of them, also where it spoke for the attempt: intake does not hear it
// any more.
func (s situation) leftovers() (jobs []Job, pods []Pod) {
	current := s.job()
	for _, j := range s.o.Jobs {
		if j.Attempt < s.m.Attempt {
			jobs = append(jobs, j)
		}
	}
	for _, p := range s.o.Pods {
		if current == nil || p.JobUID != current.UID {
			pods = append(pods, p)
		}
	}
	return jobs, pods
}

// someoneWorks reports whether a pod of any attempt may still write to the volumes: only such a pod can end cleanly.
func (o Observed) someoneWorks() bool {
	return slices.ContainsFunc(o.Pods, func(p Pod) bool { return p.Started && !p.Ended })
}

// anyLeft reports whether a Job or pod may still do something.
func (o Observed) anyLeft() bool {
	return slices.ContainsFunc(o.Pods, func(p Pod) bool { return !p.Ended }) ||
		slices.ContainsFunc(o.Jobs, func(j Job) bool { return !j.Ended })
}

// full reports whether the project has no room for another agent.
func (c Capacity) full() bool { return c.Limit > 0 && c.Running+c.Ahead >= c.Limit }

// totalReached reports whether there is no room in all projects together for another agent.
func (c Capacity) totalReached() bool { return c.Total > 0 && c.RunningTotal+c.AheadTotal >= c.Total }

// worked is the running time of an attempt until now.
func (j JobMemory) worked(now time.Time) time.Duration {
	until := now
	if !j.WaitingSince.IsZero() {
		until = j.WaitingSince
	}
	return max(until.Sub(j.StartedAt)-time.Duration(j.WaitedSeconds)*time.Second, 0)
}

// unstarted reports whether no container of the attempt's pod has run yet.
func (s situation) unstarted() bool {
	p := s.pod()
	return p == nil || !p.Started && !p.Ended
}

// metered notes when the attempt begins and ends to wait, for a user or for its pod to start: that time does not count. If the pod's start
// is known, the wait for it ended then, however late it is noted.
func (s situation) metered(waits bool) JobMemory {
	j, now := *s.m.Job, s.now
	switch {
	case waits && j.WaitingSince.IsZero():
		j.WaitingSince = now
	case !waits && !j.WaitingSince.IsZero():
		until := now
		if p := s.pod(); p != nil && p.StartedAt.After(j.WaitingSince) {
			until = p.StartedAt
		}
		j.WaitedSeconds += int64(max(until.Sub(j.WaitingSince), 0) / time.Second)
		j.WaitingSince = time.Time{}
	}
	return j
}
