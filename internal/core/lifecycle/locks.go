// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// lockRecheck is how often a lock that is waited for is looked at without any event: only who looks finds out that
// nobody renews it any more.
const lockRecheck = 30 * time.Second

// The locks of a Feature follow one order, so that a crash between any two of its steps is fixed by the next look: a
// lock is taken, then an attempt starts and the status names it; the status stops naming it, then it is freed. A lock
// that the status names and that is not held was therefore taken away.

// lock sees to the locks of the plan. It reports whether all of them are held; where they are not it asks for them, or
// says who is in the way.
func (c *course) lock() bool {
	l := c.o.Locks
	noted := func(contract string) bool { return slices.Contains(c.o.Memory.Locks, contract) }
	held := func(contract string) bool { return slices.Contains(l.Held, contract) }
	// What is held and not noted is taken again before an attempt rests on it: somebody may be about to free it.
	safe := func(contract string) bool { return held(contract) && (noted(contract) || l.Taken || c.active()) }
	switch {
	case all(l.Wanted, safe):
		return true
	case len(l.Busy) == 0 && !l.Taken:
		if c.live() {
			c.need(NeedLocks)
		}
	case c.active(), c.errand:
		// The plan was given one more contract meanwhile: the work goes on with those that it has. And where a Feature
		// stands does not change by an errand, which waits for the locks as well, since what it brings back is judged.
		c.wake(c.now.Add(lockRecheck))
	case l.Fail:
		c.at = c.lockNotFreeStanding()
		c.refuseRetries(bounded(waitsFor(l.Busy)))
	default:
		c.at = standing{phase: Pending, reason: ReasonWaitingForLock, message: waitsFor(l.Busy)}
		c.wake(c.now.Add(lockRecheck))
	}
	return false
}

func all(list []string, is func(string) bool) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !is(s) })
}

// settleLocks decides which locks stay, once it is known how things go on.
func (c *course) settleLocks() {
	l := c.o.Locks
	var stay []string
	switch {
	case c.active() || c.d.Start != nil || c.someoneWorks():
		stay = l.Held
	case c.keepLocks:
		stay = slices.DeleteFunc(slices.Clone(l.Held), func(s string) bool { return !slices.Contains(c.o.Memory.Locks, s) })
	}
	c.m.Locks = slices.Clone(stay)
	if len(stay) > 0 && !l.Renew.IsZero() {
		c.d.RenewLocks = !c.now.Before(l.Renew)
		if !c.d.RenewLocks {
			c.wake(l.Renew)
		}
	}
	if c.d.Needs == NeedLocks {
		return
	}
	for _, contract := range l.Held {
		// A status that still names it is written first.
		noted := slices.Contains(c.o.Memory.Locks, contract) && !c.d.Release
		if !slices.Contains(stay, contract) && !noted && c.live() {
			c.d.Unlock = append(c.d.Unlock, contract)
		}
	}
}

// lockLost reports whether a lock was taken away from the current attempt, now or earlier.
func (c *course) lockLost() bool {
	if c.m.Attempt == 0 || c.m.Attempt != c.o.Memory.Attempt {
		return false // only the locks of an attempt that was written down
	}
	c.lost = c.was(contract.ReasonLockLost) || len(c.lostLocks()) > 0 && c.live()
	return c.lost
}

// was reports whether the locks are in the way for a reason since before: it stays so until an attempt starts, which takes
// a person who asks for it.
func (c *course) was(reason string) bool {
	same := c.m.Attempt == c.o.Memory.Attempt || c.m.Job != nil && c.m.Job.Errand
	return same && c.o.Memory.Condition(ConditionLocksHeld).Reason == reason
}

// lostLocks are the locks that the status names and that are not held.
func (c *course) lostLocks() []string {
	return slices.DeleteFunc(slices.Clone(c.o.Memory.Locks), func(s string) bool { return slices.Contains(c.o.Locks.Held, s) })
}

// wishWithLocks is wish for a Feature that lost a lock, or could not have one: a person decides how that goes on.
func (c *course) wishWithLocks() (RunKind, standing) {
	run, at := c.wish()
	if at.phase == Failed {
		return run, at
	}
	switch {
	case c.lockLost():
		at = c.lockLostStanding()
	case c.was(ReasonLockNotFree):
		at = c.lockNotFreeStanding()
	default:
		return run, at
	}
	if run == "" {
		run = RunAgent
	}
	return c.wishRetry(run, at)
}

func (c *course) lockLostStanding() standing {
	at := standing{phase: Blocked, reason: contract.ReasonLockLost, stalled: true, message: c.o.Memory.Condition(ConditionLocksHeld).Message}
	if lost := c.lostLocks(); len(lost) > 0 {
		at.message = fmt.Sprintf("The lease of contract %s expired and was reclaimed%s. What was done under it may clash with what others did "+
			"meanwhile: the agent was stopped. The work is kept: look at it, then go on with %s, which takes the lock again first.",
			strings.Join(lost, ", "), c.reclaimer(lost[0]), c.retryHint())
	}
	return at
}

// reclaimer says who has a lost lock now, where anybody has.
func (c *course) reclaimer(lost string) string {
	i := slices.IndexFunc(c.o.Locks.Busy, func(b Contender) bool { return b.Contract == lost && !b.Before })
	if i < 0 {
		return ""
	}
	return " by " + c.o.Locks.Busy[i].Who
}

func (c *course) lockNotFreeStanding() standing {
	at := standing{phase: Blocked, reason: ReasonLockNotFree, stalled: true, message: c.o.Memory.Condition(ConditionLocksHeld).Message}
	if !c.was(ReasonLockNotFree) || len(c.granted) > 0 {
		at.message = fmt.Sprintf("%s The policy says concurrency.locks: Fail. Try again with %s.", waitsFor(c.o.Locks.Busy), c.retryHint())
	}
	return at
}

// waitsFor says who is in the way.
func waitsFor(busy []Contender) string {
	var parts []string
	for _, b := range busy {
		if b.Before {
			parts = append(parts, fmt.Sprintf("%s waits for the lock of contract %s and comes first.", b.Who, b.Contract))
		} else {
			parts = append(parts, fmt.Sprintf("The lock of contract %s is held by %s.", b.Contract, b.Who))
		}
	}
	return strings.Join(parts, " ")
}

func (c *course) locksHeld() Condition {
	l := c.o.Locks
	switch {
	case c.at.reason == contract.ReasonLockLost, c.at.reason == ReasonLockNotFree:
		return Condition{ConditionLocksHeld, False, c.at.reason, c.at.message}
	case c.lost:
		// Kept also while it goes on as a person asked, until the next attempt has the locks.
		return Condition{ConditionLocksHeld, False, contract.ReasonLockLost, c.lockLostStanding().message}
	case c.was(contract.ReasonLockLost), c.was(ReasonLockNotFree):
		return c.o.Memory.Condition(ConditionLocksHeld)
	case len(l.Wanted)+len(c.m.Locks) == 0:
		return Condition{ConditionLocksHeld, True, ReasonNoLocks, "The plan names no contracts."}
	case len(l.Busy) > 0 && (c.active() || c.errand || c.at.reason == ReasonWaitingForLock):
		return Condition{ConditionLocksHeld, False, ReasonWaitingForLock, c.partly() + waitsFor(l.Busy)}
	case len(c.m.Locks) == 0:
		return Condition{ConditionLocksHeld, False, ReasonNotRunning, "No lock is held while nothing runs; they are taken before an attempt starts."}
	default:
		return c.holds()
	}
}

// partly says which locks an attempt has that waits for more.
func (c *course) partly() string {
	if len(c.m.Locks) == 0 {
		return ""
	}
	return fmt.Sprintf("Held: %s. Until the others are, a change of their paths is invalid. ", strings.Join(c.m.Locks, ", "))
}

// holds says which locks are held, and what is to be known about them.
func (c *course) holds() Condition {
	l := c.o.Locks
	reason, message := ReasonLocksHeld, fmt.Sprintf("Held: %s.", strings.Join(c.m.Locks, ", "))
	for _, r := range l.Reclaimed {
		reason = ReasonLockReclaimed
		message += fmt.Sprintf(" The lease of %s had expired and was reclaimed from %s.", r.Contract, r.Who)
	}
	if len(l.Unguarded) > 0 {
		message += fmt.Sprintf(" No policy names paths of %s: name them under contracts.", strings.Join(l.Unguarded, ", "))
	}
	return Condition{ConditionLocksHeld, True, reason, message}
}
