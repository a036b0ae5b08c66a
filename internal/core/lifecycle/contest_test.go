// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// contest is several Features that want the locks of one repository.
type contest struct {
	sims   []*sim
	shared *leases
	// past of each Feature, for stale caches.
	past [][]snapshot
}

func newContest(t *rapid.T) *contest {
	c := &contest{shared: newLeases()}
	for i := range rapid.IntRange(2, 4).Draw(t, "features") {
		s := newSim()
		s.uid = fmt.Sprintf("feature-%d", i)
		s.leases = c.shared
		s.wanted = slices.Sorted(slices.Values(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, "contracts")))
		c.sims = append(c.sims, s)
		c.past = append(c.past, []snapshot{s.look(false)})
	}
	return c
}

// lineUp is what the cache shows of who waits.
func (c *contest) lineUp() {
	c.shared.waiting = nil
	for _, s := range c.sims {
		if s.memory.Condition(ConditionSucceeded).Reason == ReasonWaitingForLock {
			c.shared.waiting = append(c.shared.waiting, locks.Waiter{Holder: s.holder(), Locks: s.wanted})
		}
	}
}

// check holds that no two Features may change one contract, and that nobody works without the locks that were wanted at
// the start unless they were reclaimed from somebody who did not renew them.
func (c *contest) check(t *rapid.T) {
	by := map[string]string{}
	for _, s := range c.sims {
		if s.broken != "" {
			t.Fatalf("%s: %s", s.uid, s.broken)
		}
		for _, contract := range s.entitled() {
			if other := by[contract]; other != "" {
				t.Fatalf("%s and %s may both change %s", other, s.uid, contract)
			}
			by[contract] = s.uid
		}
	}
}

// TestContest lets Features contend for locks, with stale caches, crashes between any two writes, managers that are
// away for longer than a lease lasts, and pods that come and go: never do two hold one lock, and once things calm
// down each gets its turn, none by taking a lock from one who still lives.
func TestContest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newContest(t)
		one := func(t *rapid.T) int { return rapid.IntRange(0, len(c.sims)-1).Draw(t, "which") }
		t.Repeat(map[string]func(*rapid.T){
			"reconcile":    func(t *rapid.T) { s := c.sims[one(t)]; s.reconcile(s.look(false), fate{}) },
			"things go on": func(t *rapid.T) { c.sims[one(t)].settle() },
			"reconcile and die": func(t *rapid.T) {
				s := c.sims[one(t)]
				s.reconcile(s.look(false), drawFate(t))
			},
			"reconcile on a stale cache": func(t *rapid.T) {
				i := one(t)
				c.sims[i].reconcile(rapid.SampledFrom(c.past[i]).Draw(t, "from"), fate{})
			},
			"pods are lost":    func(t *rapid.T) { c.sims[one(t)].losePods() },
			"the work is done": func(t *rapid.T) { c.sims[one(t)].work() },
			"a final report": func(t *rapid.T) {
				c.sims[one(t)].final(protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid, "Something was found.")
			},
			"a retry is asked for": func(t *rapid.T) { c.sims[one(t)].request(RequestRetry) },
			"spec.suspend changes": func(t *rapid.T) { s := c.sims[one(t)]; s.spec.Suspend = !s.spec.Suspend; s.spec.Generation++ },
			"a policy suspends": func(t *rapid.T) {
				one := c.sims[one(t)]
				one.spec.SuspendedBy = stopped[len(one.spec.SuspendedBy) == 0]
			},
			"time passes":           func(t *rapid.T) { c.pass(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second) },
			"nobody is there":       func(t *rapid.T) { c.pass(time.Duration(rapid.IntRange(5, 60).Draw(t, "minutes")) * time.Minute) },
			"a manager that starts": func(*rapid.T) { clear(c.shared.seen) },
			"": func(t *rapid.T) {
				c.lineUp()
				c.check(t)
				for i, s := range c.sims {
					c.past[i] = append(c.past[i], s.look(false))
				}
			},
		})
		c.calmDown(t)
	})
}

func (c *contest) pass(d time.Duration) {
	for _, s := range c.sims {
		s.now = s.now.Add(d)
	}
}

// calmDown: every Feature is delivered, each after the others, and no lock is left.
func (c *contest) calmDown(t *rapid.T) {
	for range 60 {
		done := true
		for _, s := range c.sims {
			s.spec.Suspend, s.spec.SuspendedBy = false, ""
			if s.memory.Phase == Blocked || s.memory.Phase == Failed {
				s.request(RequestRetry)
			}
			c.lineUp()
			s.settle()
			s.work()
			s.settle()
			c.check(t)
			done = done && s.memory.Phase == Delivered
		}
		if done {
			break
		}
		c.pass(time.Minute)
	}
	for _, s := range c.sims {
		if s.memory.Phase != Delivered {
			t.Fatalf("%s never gets its turn: %s %s", s.uid, s.line(), s.memory.Condition(ConditionLocksHeld).Message)
		}
	}
	if len(c.shared.of) > 0 {
		t.Fatalf("locks are left: %v", c.shared.of)
	}
}
