// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// goOn is for a Feature without a current attempt: it finds out which run it wants next, and starts it when nothing is
// in the way and nothing is left of the last one.
func (c *course) goOn() {
	run, why := c.wishWithLocks()
	c.at = why
	exposed := run == RunAgent && c.exposed()
	errand := (run == "" || c.o.Spec.Suspend || exposed && c.m.Attempt > 0) && c.errandWaits()
	c.keepLocks = !c.o.Spec.Suspend && (run != "" || why.phase == ReadyToMerge)
	switch {
	case errand:
		run = RunSeal
		if exposed {
			c.at = c.exposedStanding()
		}
	case run == "":
		c.rest()
		return
	}
	after := c.earliest(run, errand)
	switch {
	case c.o.Refusal != nil:
		c.at = refusedStanding(c.o.Refusal)
		c.keepLocks = false
		c.wake(c.now.Add(refusalRecheck))
	case c.o.Spec.Suspend && !errand:
		c.at = suspendedStanding()
		c.rest()
	case c.o.Spec.Suspend:
		c.at = suspendedStanding()
		c.runErrand(after)
	case errand:
		c.runErrand(after)
	case c.now.Before(after):
		c.wake(after)
	case c.o.Obstacle != nil:
		c.at = refusedStanding(c.o.Obstacle)
		c.at.reconciling = false
		c.wake(c.now.Add(obstacleRecheck))
	case exposed:
		c.at = c.exposedStanding()
		c.wake(c.now.Add(networkRecheck))
	case run == RunAgent && c.full():
		c.at = standing{phase: Pending, reason: ReasonAtCapacity, message: fmt.Sprintf(
			"The policy lets %d agents of this project run at once: this Feature waits for one to end (higher priority first, then older).", c.o.Capacity.Limit)}
		c.wake(c.now.Add(capacityRecheck))
	case run == RunAgent && !c.disjoint():
	default:
		c.begin(run)
	}
	switch c.at.reason {
	case ReasonWaitingForLock, ReasonWaitingForArea, contract.ReasonNetworkOpened:
		c.keepLocks = false
	}
}

// Rechecks are for changes that no event tells of.
const (
	// refusalRecheck covers prompts in ConfigMaps, which are not watched.
	refusalRecheck = 15 * time.Second
	// obstacleRecheck covers services that get an address, quotas that are raised, and objects that get out of the way.
	obstacleRecheck = 5 * time.Second
	// capacityRecheck covers an event that was missed; normally the end of another Feature wakes this one.
	capacityRecheck = time.Minute
)

// begin asks for the Job of the next attempt once no Job and no pod of any earlier one is left.
func (c *course) begin(run RunKind) {
	if len(c.o.Jobs)+len(c.o.Pods) == 0 {
		if c.turn() && c.live() && c.lock() {
			c.need(NeedJob)
			c.d.Start = &Start{Attempt: c.m.Attempt + 1, Run: run}
			if run == RunAgent {
				c.d.Start.Mode = c.o.Spec.Mode
			}
		}
		return
	}
	if c.someoneWorks() && c.m.Job != nil {
		if limit := c.m.Job.EndedAt.Add(stopGrace); c.now.Before(limit) {
			c.wake(limit)
			return
		}
	}
	c.remove(c.o.Jobs, c.o.Pods)
}

// full reports whether the project has no room for another agent.
func (c *course) full() bool {
	return c.o.Capacity.Limit > 0 && c.o.Capacity.Running+c.o.Capacity.Ahead >= c.o.Capacity.Limit
}

// wish says which run should come next ("" for none), were nothing in the way, and where the Feature stands with it.
func (c *course) wish() (RunKind, standing) {
	if c.m.Attempt == 0 || c.m.Job == nil {
		return RunAgent, standing{phase: Pending, reason: ReasonPreparing, message: "The first attempt is about to start."}
	}
	f := c.final()
	switch {
	case f == nil && c.m.Job.Errand:
		return RunSeal, c.remembered()
	case f != nil && f.Outcome == contract.OutcomeReadyToMerge:
		return c.wishApproved(f)
	case c.m.Phase == Failed:
		return c.wishAfterFailure()
	case f == nil:
		return c.wishAfterLoss()
	}
	switch f.Outcome {
	case contract.OutcomeAgentFailed:
		return c.wishAfterAgentFailed(f)
	case contract.OutcomeSwitched:
		return c.unlessOver(standing{phase: Preparing, reason: contract.ReasonModeSwitched, message: fmt.Sprintf(
			"%s Attempt %d is about to start; it counts as no retry.", sentence(f.Message), c.m.Attempt+1)})
	case contract.OutcomeSuspended, contract.OutcomeStopped:
		return c.unlessOver(standing{phase: Preparing, reason: ReasonPreparing, message: fmt.Sprintf("Attempt %d is about to start: the work goes on.", c.m.Attempt+1)})
	default:
		// Blocked, and anything that a newer watchdog may say: a person decides.
		return c.wishAfterBlocked(f)
	}
}

// unlessOver wishes for an agent, if there is running time left.
func (c *course) unlessOver(why standing) (RunKind, standing) {
	if c.deadlineOver() {
		c.refuseRetries(raiseFirst)
		return "", c.deadlineStanding()
	}
	return RunAgent, why
}

func (c *course) wishAfterLoss() (RunKind, standing) {
	if c.m.Job.Run == RunSeal || !c.deadlineOver() {
		c.grantRetries()
	}
	message := fmt.Sprintf("Attempt %d ended without a final report; attempt %d follows from the last valid checkpoint%s", c.m.Attempt, c.m.Attempt+1, c.follows())
	if c.m.Job.Run == RunSeal {
		return RunSeal, standing{phase: ReadyToMerge, reason: ReasonPodLost, message: message}
	}
	return c.unlessOver(standing{phase: Preparing, reason: ReasonPodLost, message: message})
}

func (c *course) wishAfterAgentFailed(f *Final) (RunKind, standing) {
	if c.m.Failures > c.o.Spec.Retries {
		return c.wishRetry(RunAgent, c.agentFailedStanding(f))
	}
	if !c.deadlineOver() {
		c.grantRetries()
	}
	return c.unlessOver(standing{phase: Preparing, reason: ReasonRetrying, message: fmt.Sprintf(
		"Attempt %d: %s Retry %d of %d follows%s", c.m.Attempt, sentence(f.Message), c.m.Failures, c.o.Spec.Retries, c.follows())})
}

// wishAfterFailure keeps a Feature that failed where it is until a person asks for more: neither a raised deadline nor
// more retries start anything by themselves.
func (c *course) wishAfterFailure() (RunKind, standing) {
	at := c.deadlineStanding()
	wasDeadline := c.o.Memory.Condition(ConditionSucceeded).Reason == contract.ReasonDeadlineExceeded
	if f := c.final(); f != nil && f.Outcome == contract.OutcomeAgentFailed && !wasDeadline {
		at = c.agentFailedStanding(f)
	}
	if c.deadlineOver() {
		c.refuseRetries(raiseFirst)
		return "", at
	}
	return c.wishRetry(RunAgent, at)
}

// raiseFirst answers a retry for which there is no running time left.
const raiseFirst = "The running time is over spec.deadline: raise it first, then ask again with a new id."

func (c *course) wishAfterBlocked(f *Final) (RunKind, standing) {
	run := RunAgent
	if (f.Reason == contract.ReasonPushConflict || f.Reason == contract.ReasonPushFailed || f.Reason == contract.ReasonHistoryInvalid) && !c.o.Spec.Ephemeral {
		run = RunSeal
	}
	if run == RunAgent && c.deadlineOver() {
		c.refuseRetries(raiseFirst)
		return "", c.blockedStanding(f)
	}
	return c.wishRetry(run, c.blockedStanding(f))
}

// wishApproved delivers what is ready once it is approved.
func (c *course) wishApproved(f *Final) (RunKind, standing) {
	head := cmp.Or(f.Head, c.m.Head)
	spec := c.o.Spec
	switch {
	case spec.Ephemeral:
		return "", standing{phase: Blocked, reason: ReasonVolumesRequired, stalled: true, message: fmt.Sprintf(
			"Commit %s was ready and needed an approval%s. With spec.workspace.ephemeral it was gone with its pod: create the Feature again without that field.", head, requiredBy(spec))}
	case !spec.RequireApproval || spec.ApprovedCommit == head && head != "":
		return RunSeal, standing{phase: ReadyToMerge, reason: ReasonDelivering, message: fmt.Sprintf("Commit %s is approved and will be pushed to branch %s.", head, spec.Branch)}
	case spec.ApprovedCommit == "":
		return "", standing{phase: ReadyToMerge, reason: contract.ReasonApprovalRequired, message: fmt.Sprintf(
			"Commit %s waits for approval%s: set spec.delivery.approvedCommit to it and it is pushed to branch %s.", head, requiredBy(spec), spec.Branch) + squashed(f)}
	default:
		return "", standing{phase: ReadyToMerge, reason: contract.ReasonApprovalMismatch, message: fmt.Sprintf(
			"spec.delivery.approvedCommit is %s, but the commit that is ready is %s: look at it and approve that one.", spec.ApprovedCommit, head) + squashed(f)}
	}
}

// requiredBy names the policy that requires an approval; nothing where the Feature does so by itself.
func requiredBy(s Spec) string {
	if s.ApprovalBy == "" {
		return ""
	}
	return ", which the policy requires (delivery.approval in " + s.ApprovalBy + ")"
}

// squashed says why the commit to approve is not the one that was reported before.
func squashed(f *Final) string {
	if _, why, found := strings.Cut(f.Message, contract.HistorySquashed); found {
		return " Its history is one commit on the base: " + sentence(why)
	}
	return ""
}

// wishRetry starts a run if a person asked for one.
func (c *course) wishRetry(run RunKind, otherwise standing) (RunKind, standing) {
	if !c.grantRetries() {
		return "", otherwise
	}
	at := standing{phase: Preparing, reason: ReasonPreparing, message: fmt.Sprintf("Attempt %d is about to start, as requested.", c.m.Attempt+1)}
	if run == RunSeal {
		at = standing{phase: ReadyToMerge, reason: ReasonDelivering, message: "The branch is about to be pushed again, as requested."}
	}
	return run, at
}
