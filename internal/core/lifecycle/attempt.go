// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// longEnough an attempt must have lived for its loss not to count as one in a row.
const longEnough = 10 * time.Minute

// adopt makes the newest Job that is seen the current attempt. It is the only way in which attempts advance: whoever
// made the Job may have died before writing so.
func (c *course) adopt() {
	newest := -1
	for i, j := range c.o.Jobs {
		if j.Attempt > c.m.Attempt && (newest < 0 || j.Attempt > c.o.Jobs[newest].Attempt) {
			newest = i
		}
	}
	if newest < 0 {
		return
	}
	if c.active() {
		// The newer Job was only made because this attempt had ended.
		c.fold()
	}
	job := c.o.Jobs[newest]
	errand := c.isErrand(job)
	if !errand {
		c.closeRetries(job)
	}
	c.m.Attempt = job.Attempt
	c.m.Job = &JobMemory{Name: job.Name, Run: job.Run, Mode: job.Mode, Errand: errand, StartedAt: job.Created}
	if c.m.StartedAt.IsZero() {
		c.m.StartedAt = job.Created
	}
	if c.m.Phase == Failed && !errand {
		c.m.Phase, c.m.FinishedAt = Preparing, time.Time{}
	}
}

// closeRetries answers the requests that the Job was made for.
func (c *course) closeRetries(job Job) {
	f := c.final()
	for _, r := range c.o.Spec.Requests {
		if c.isRetry(r, f) && !c.answered(r.ID) {
			c.answer(r.ID, RequestDone, fmt.Sprintf("Attempt %d was started.", job.Attempt))
		}
	}
}

// pin chooses the one pod that may speak for the attempt.
func (c *course) pin() {
	job := c.job()
	if !c.active() || job == nil {
		return
	}
	var mine []Pod
	for _, p := range c.o.Pods {
		if p.JobUID == job.UID {
			mine = append(mine, p)
		}
	}
	switch {
	case len(mine) == 0 || c.m.Job.PodUID != "" && len(mine) == 1 && mine[0].UID == c.m.Job.PodUID:
	case !c.live():
	case c.m.Job.PodUID == "" && len(mine) == 1:
		c.m.Job.PodName, c.m.Job.PodUID = mine[0].Name, mine[0].UID
	default:
		// A Job of ours has one pod. With two it cannot be known which one the volumes belong to.
		for _, p := range mine {
			if p.UID != c.m.Job.PodUID {
				c.remove(nil, []Pod{p})
			}
		}
	}
}

// conclude notes the end of the attempt, once: by its final report, or because a live read shows that its pod is gone.
func (c *course) conclude() {
	if !c.active() {
		return
	}
	if c.final() != nil || c.gone() && c.live() {
		c.fold()
	}
}

// fold counts the attempt's time and outcome.
func (c *course) fold() {
	job := c.m.Job
	c.meter(false)
	job.EndedAt = c.now
	lived := max(c.now.Sub(job.StartedAt), 0)
	if job.Run == RunAgent {
		c.m.ActiveSeconds += int64(c.worked() / time.Second)
	}
	f := c.final()
	if p := c.pod(); f == nil && p != nil {
		c.fate = p.Fate
	}
	switch {
	case f == nil && !job.StopRequestedAt.IsZero():
		// It was asked to end, and has; only its last word is missing.
	case f == nil && lived >= longEnough:
		c.m.Lost = 1
	case f == nil:
		c.m.Lost++
	default:
		c.m.Lost = 0
		if f.Outcome == contract.OutcomeAgentFailed && !job.Errand {
			c.m.Failures++
		}
	}
}

// active reports whether there is an attempt whose end was not noted.
func (c *course) active() bool {
	return c.m.Attempt > 0 && c.m.Job != nil && c.m.Job.EndedAt.IsZero()
}

// final is the last word of the current attempt; nil before it.
func (c *course) final() *Final {
	if c.m.Attempt == 0 || c.o.Run == nil || c.o.Run.Final == nil || c.o.Run.Final.Epoch != c.m.Attempt {
		return nil
	}
	return c.o.Run.Final
}

// report is what the watchdog says of the current attempt; nil before it says anything.
func (c *course) report() *Run {
	if c.o.Run == nil || c.o.Run.Epoch != c.m.Attempt || c.m.Attempt == 0 {
		return nil
	}
	return c.o.Run
}

// job is the Job of the current attempt; nil when it is not there.
func (c *course) job() *Job {
	for i := range c.o.Jobs {
		if c.o.Jobs[i].Attempt == c.m.Attempt {
			return &c.o.Jobs[i]
		}
	}
	return nil
}

// pod is the one pod of the current attempt; nil when it is not there.
func (c *course) pod() *Pod {
	for i := range c.o.Pods {
		if c.m.Job != nil && c.m.Job.PodUID != "" && c.o.Pods[i].UID == c.m.Job.PodUID {
			return &c.o.Pods[i]
		}
	}
	return nil
}

// gone reports whether the attempt can do nothing more: its pod ended or is not there, or there never will be one.
func (c *course) gone() bool {
	if c.m.Job.PodUID != "" {
		p := c.pod()
		return p == nil || p.Ended
	}
	job := c.job()
	if job == nil {
		return true
	}
	if !job.Ended {
		return false
	}
	for _, p := range c.o.Pods {
		if p.JobUID == job.UID && !p.Ended {
			return false
		}
	}
	return true
}

// someoneWorks reports whether a pod of any attempt may still write to the volumes: only such a pod can end in order.
func (c *course) someoneWorks() bool {
	for _, p := range c.o.Pods {
		if p.Started && !p.Ended {
			return true
		}
	}
	return false
}

// anyLeft reports whether a Job or pod may still do something.
func (c *course) anyLeft() bool {
	for _, p := range c.o.Pods {
		if !p.Ended {
			return true
		}
	}
	for _, j := range c.o.Jobs {
		if !j.Ended {
			return true
		}
	}
	return false
}

// sweep removes Jobs and pods of older attempts and of no Job: they must be gone before anything new starts, and they
// have no business beside a current attempt either.
func (c *course) sweep() {
	var jobs []Job
	var pods []Pod
	current := c.job()
	for _, j := range c.o.Jobs {
		if j.Attempt < c.m.Attempt {
			jobs = append(jobs, j)
		}
	}
	for _, p := range c.o.Pods {
		mine := current != nil && p.JobUID == current.UID || c.m.Job != nil && p.UID == c.m.Job.PodUID
		if !mine {
			pods = append(pods, p)
		}
	}
	c.remove(jobs, pods)
}

// remove asks for the deletion of what is not being deleted already.
func (c *course) remove(jobs []Job, pods []Pod) {
	for _, j := range jobs {
		if !j.Deleting && c.live() {
			c.d.DeleteJobs = include(c.d.DeleteJobs, Object{Name: j.Name, UID: j.UID})
		}
	}
	for _, p := range pods {
		if !p.Deleting && c.live() {
			c.d.DeletePods = include(c.d.DeletePods, Object{Name: p.Name, UID: p.UID})
		}
	}
}

func include(list []Object, o Object) []Object {
	if slices.Contains(list, o) {
		return list
	}
	return append(list, o)
}

// activeTime is the running time of the attempts that ended.
func (c *course) activeTime() time.Duration { return time.Duration(c.m.ActiveSeconds) * time.Second }

// meter notes when the agent begins and ends to wait for a person: that time does not count.
func (c *course) meter(waits bool) {
	job := c.m.Job
	switch {
	case waits && job.WaitingSince.IsZero():
		job.WaitingSince = c.now
	case !waits && !job.WaitingSince.IsZero():
		job.WaitedSeconds += int64(max(c.now.Sub(job.WaitingSince), 0) / time.Second)
		job.WaitingSince = time.Time{}
	}
}

// worked is the running time of the current attempt until now.
func (c *course) worked() time.Duration {
	job := c.m.Job
	until := c.now
	if !job.WaitingSince.IsZero() {
		until = job.WaitingSince
	}
	return max(until.Sub(job.StartedAt)-time.Duration(job.WaitedSeconds)*time.Second, 0)
}

// deadlineOver reports whether the running time is over the deadline.
func (c *course) deadlineOver() bool {
	if c.o.Spec.Deadline <= 0 {
		return false
	}
	running := c.activeTime()
	if c.active() && c.m.Job.Run == RunAgent {
		running += c.worked()
	}
	return running >= c.o.Spec.Deadline
}
