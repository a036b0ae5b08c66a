// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// lockRecheck is how often a lock that is waited for is looked at without an event: that it is not renewed any more shows only to a process that looks.
const lockRecheck = 30 * time.Second

// The locks of a Feature follow one order, so that a crash between any two of its steps is fixed by the next look: a
// lock is taken, then an attempt starts and the status names it; the status stops naming it, then it is freed. A lock
// that the status names and that is not held was therefore taken away.

// lockPlan is the plan for the locks.
type lockPlan struct {
	// stay are the held locks that the status names.
	stay []string
	// renew says that it is time to renew them.
	renew bool
	// free are the held locks that no status names any more.
	free []string
}

// lock sees to the locks of the plan. It reports whether the Feature holds all of them; if it does not, it asks for them, or
// says who is in the way.
func (p *plan) lock(s situation, next nextRun, errand bool) bool {
	l := s.o.Locks
	noted := func(contract string) bool { return slices.Contains(s.o.Memory.Locks, contract) }
	held := func(contract string) bool { return slices.Contains(l.Held, contract) }
	// The controller takes a held lock that is not noted again before an attempt depends on it: another process may be about to free it.
	safe := func(contract string) bool { return held(contract) && (noted(contract) || l.Taken || s.active()) }
	switch {
	case all(l.Wanted, safe):
		return true
	case len(l.Busy) == 0 && !l.Taken:
		if p.live(s) {
			p.need(NeedLocks)
		}
	case s.active(), errand:
		// The plan was given one more contract meanwhile: the work continues with the ones that it has. An errand does not change the state of a
		// Feature, and waits for the locks as well, because its result is checked.
		p.wake(s.now.Add(lockRecheck))
	case l.Fail:
		p.at = s.lockNotFreeSummary(next.granted)
		p.refusal = bounded(waitsFor(l.Busy))
	default:
		p.at = summary{phase: Pending, reason: ReasonWaitingForLock, message: waitsFor(l.Busy)}
		p.wake(s.now.Add(lockRecheck))
	}
	return false
}

func all(list []string, is func(string) bool) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !is(s) })
}

// withLocks is a plan with the plan for the locks, which follows from the rest of it.
func (s situation) withLocks(p plan) plan {
	l := s.o.Locks
	noted := func(contract string) bool { return slices.Contains(s.o.Memory.Locks, contract) }
	switch {
	case s.active() || p.start != nil || s.o.someoneWorks():
		p.locks.stay = l.Held
		if len(s.lostLocks()) > 0 {
			p.live(s) // A cache that lags takes no lock from an attempt.
		}
	case p.keepLocks && !slices.Contains([]string{ReasonWaitingForLock, ReasonWaitingForArea, protocol.ReasonNetworkOpened}, p.at.reason):
		p.locks.stay = slices.DeleteFunc(slices.Clone(l.Held), func(contract string) bool { return !noted(contract) })
	}
	if len(p.locks.stay) > 0 && !l.Renew.IsZero() {
		p.locks.renew = !s.now.Before(l.Renew)
		if !p.locks.renew {
			p.wake(l.Renew)
		}
	}
	if p.needs == NeedLocks {
		return p
	}
	for _, contract := range l.Held {
		// A status that still names it is written first.
		if !slices.Contains(p.locks.stay, contract) && (!noted(contract) || p.release) && p.live(s) {
			p.locks.free = append(p.locks.free, contract)
		}
	}
	return p
}

// lockLost reports whether a lock was taken away from the current attempt, now or earlier. It is not known while the
// facts are not live.
func (s situation) lockLost() (lost, known bool) {
	switch {
	case s.locksWere(protocol.ReasonLockLost):
		return true, true // Also while an errand is seen first that ended before.
	case s.m.Attempt == 0 || s.m.Attempt != s.o.Memory.Attempt:
		return false, true // Only the locks of an attempt that was written down.
	case len(s.lostLocks()) > 0:
		return s.o.Live, s.o.Live
	default:
		return false, true
	}
}

// locksWere reports whether the locks are in the way for a reason since before: it stays so until an attempt starts, which takes a request of a user.
func (s situation) locksWere(reason string) bool {
	same := s.m.Attempt == s.o.Memory.Attempt || s.m.Job != nil && s.m.Job.Errand
	return same && s.o.Memory.Condition(ConditionLocksHeld).Reason == reason
}

// lostLocks are the locks that the status names and that are not held.
func (s situation) lostLocks() []string {
	return slices.DeleteFunc(slices.Clone(s.o.Memory.Locks), func(contract string) bool { return slices.Contains(s.o.Locks.Held, contract) })
}

func (s situation) lockLostSummary() summary {
	at := summary{phase: Blocked, reason: protocol.ReasonLockLost, stalled: true, message: s.o.Memory.Condition(ConditionLocksHeld).Message}
	if lost := s.lostLocks(); s.o.Live && len(lost) > 0 {
		at.message = fmt.Sprintf("The lease of contract %s expired and was reclaimed%s. What the agent did under it may clash with what others did "+
			"meanwhile, so Tidewaiter stopped it and keeps the work. Look at the work, then continue with %s, which takes the lock again first.",
			strings.Join(lost, ", "), reclaimer(s.o.Locks, lost[0]), s.retryHint())
	}
	return at
}

// reclaimer says who holds a lost lock now; empty where it is free.
func reclaimer(l Locks, lost string) string {
	i := slices.IndexFunc(l.Busy, func(b Contender) bool { return b.Contract == lost && !b.Before })
	if i < 0 {
		return ""
	}
	return " by " + l.Busy[i].Who
}

func (s situation) lockNotFreeSummary(granted bool) summary {
	at := summary{phase: Blocked, reason: ReasonLockNotFree, stalled: true, message: s.o.Memory.Condition(ConditionLocksHeld).Message}
	if !s.locksWere(ReasonLockNotFree) || granted || len(s.granted) > 0 {
		at.message = fmt.Sprintf("%s The policy says concurrency.onLockConflict: Fail. Try again with %s.", waitsFor(s.o.Locks.Busy), s.retryHint())
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
			parts = append(parts, fmt.Sprintf("The lock of contract %s belongs to %s.", b.Contract, b.Who))
		}
	}
	return strings.Join(parts, " ")
}

func (s situation) locksHeld(p plan, at summary) Condition {
	l, held := s.o.Locks, p.locks.stay
	switch {
	case at.reason == protocol.ReasonLockLost, at.reason == ReasonLockNotFree:
		return Condition{ConditionLocksHeld, False, at.reason, at.message}
	case p.lost:
		// Kept also while it continues as a user asked, until the next attempt has the locks.
		return Condition{ConditionLocksHeld, False, protocol.ReasonLockLost, s.lockLostSummary().message}
	case s.locksWere(protocol.ReasonLockLost), s.locksWere(ReasonLockNotFree):
		return s.o.Memory.Condition(ConditionLocksHeld)
	case len(l.Wanted)+len(held) == 0:
		return Condition{ConditionLocksHeld, True, ReasonNoLocks, "The plan names no contracts."}
	case len(l.Busy) > 0 && (s.active() || p.errand || at.reason == ReasonWaitingForLock):
		return Condition{ConditionLocksHeld, False, ReasonWaitingForLock, partly(held) + waitsFor(l.Busy)}
	case len(held) == 0:
		return Condition{ConditionLocksHeld, False, ReasonNotRunning, "The Feature holds no lock while nothing runs. It takes its locks before an attempt starts."}
	default:
		return holds(l, held)
	}
}

// partly says which locks an attempt has that waits for more.
func partly(held []string) string {
	if len(held) == 0 {
		return ""
	}
	return fmt.Sprintf("Held: %s. Until the others are, a change of their paths is invalid. ", strings.Join(held, ", "))
}

// holds says which locks the Feature holds, and details about them.
func holds(l Locks, held []string) Condition {
	reason, message := ReasonLocksHeld, fmt.Sprintf("Held: %s.", strings.Join(held, ", "))
	for _, r := range l.Reclaimed {
		reason = ReasonLockReclaimed
		message += fmt.Sprintf(" The lease of %s had expired, and the Feature reclaimed it from %s.", r.Contract, r.Who)
	}
	if len(l.Unguarded) > 0 {
		message += fmt.Sprintf(" No policy names paths of %s: name them under contracts.", strings.Join(l.Unguarded, ", "))
	}
	return Condition{ConditionLocksHeld, True, reason, message}
}
