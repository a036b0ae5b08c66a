// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// An errand is a seal run for requests that no agent will come to take: a rollback or a checkpoint of a Feature that is
// Blocked, Failed, Suspended or ReadyToMerge. Where the Feature stands does not change by it.

// errandWaits reports whether such a request is open. Volumes that went with their pod leave nothing to run it on.
func (c *course) errandWaits() bool {
	if c.o.Spec.Ephemeral {
		return false
	}
	for _, r := range c.o.Spec.Requests {
		if _, reported := c.reported(r.ID); isErrand(r.Kind) && r.Refusal == "" && !reported && !c.answered(r.ID) {
			return true
		}
	}
	return false
}

func isErrand(k RequestKind) bool { return k == RequestRollback || k == RequestCheckpoint }

// isErrand reports whether a Job that is seen for the first time was made for requests: from the facts on which it was
// made, because whoever made it may have died before writing so.
func (c *course) isErrand(job Job) bool {
	if job.Run != RunSeal || c.m.Job == nil {
		return false
	}
	if c.m.Job.Errand && c.final() == nil {
		return true // the one before was lost
	}
	run, _ := c.wish()
	return run != RunSeal
}

// runErrand starts the run once where the Feature stands is written: it is what the run leaves as it is.
func (c *course) runErrand(after time.Time) {
	c.errand = true
	switch was := c.remembered(); {
	case c.now.Before(after):
		c.wake(after)
	case c.o.Obstacle != nil:
		c.wake(c.now.Add(obstacleRecheck))
	case was.phase != c.at.phase || was.reason != c.at.reason:
		c.wake(c.now)
	default:
		c.begin(RunSeal)
	}
}

// remembered is where the Feature stood when the status was written last.
func (c *course) remembered() standing {
	was := c.o.Memory.Condition(ConditionSucceeded)
	return standing{
		phase: c.o.Memory.Phase, reason: was.Reason, message: was.Message,
		stalled: c.o.Memory.Condition(ConditionStalled).Status == True,
	}
}

func suspendedStanding() standing {
	return standing{phase: Suspended, reason: contract.ReasonSuspended, message: "Set spec.suspend to false to resume the work."}
}
