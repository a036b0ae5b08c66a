// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/locks"
)

// leases are the Leases of one repository, which several Features may want.
type leases struct {
	of map[string]*simLease
	// seen is what a process remembers of them, as locks.Sightings does.
	seen    map[string]sighting
	waiting []locks.Waiter
	serial  int
}

// sighting says since when a Lease has had a version, as far as was seen.
type sighting struct {
	version string
	since   time.Time
}

type simLease struct {
	version int
	lease   locks.Lease
	// lost is who had it when it was reclaimed.
	lost locks.Holder
}

func newLeases() *leases { return &leases{of: map[string]*simLease{}, seen: map[string]sighting{}} }

// unchanged notes the version of a Lease, and says for how long it has had it.
func (l *leases) unchanged(contract, version string, now time.Time) time.Duration {
	if l.seen[contract].version != version {
		l.seen[contract] = sighting{version, now}
	}
	return now.Sub(l.seen[contract].since)
}

func (l *leases) clone() *leases {
	c := *l
	c.of = map[string]*simLease{}
	for contract, lease := range l.of {
		is := *lease
		c.of[contract] = &is
	}
	c.waiting = slices.Clone(l.waiting)
	c.seen = maps.Clone(l.seen)
	return &c
}

func (l *leases) write(contract string, holder locks.Holder, now time.Time) {
	l.serial++
	was := l.of[contract]
	is := &simLease{version: l.serial, lease: locks.Lease{Version: fmt.Sprint(l.serial), Holder: holder, RenewedAt: now}}
	if was != nil && was.lease.Holder == holder {
		is.lost = was.lost
	} else if was != nil {
		is.lost = was.lease.Holder
	}
	l.of[contract] = is
}

func (s *sim) holder() locks.Holder { return locks.Holder{Namespace: "shop", Name: s.uid, UID: s.uid} }

// survey is what somebody sees who wants the locks.
func (s *sim) survey() []locks.Wanted {
	var wanted []locks.Wanted
	for _, contract := range s.wanted {
		w := locks.Wanted{Contract: contract, State: locks.Free}
		if l := s.leases.of[contract]; l != nil {
			w.State = l.lease.State(s.holder(), s.leases.unchanged(contract, l.lease.Version, s.now), s.now)
			w.Holder = l.lease.Holder
		}
		me := locks.Waiter{Holder: s.holder()}
		if first, ok := locks.First(me, s.leases.waiting, contract); ok && w.State != locks.Busy {
			w.Before, w.Holder = true, first.Holder
		}
		wanted = append(wanted, w)
	}
	return wanted
}

func (s *sim) lookAtLocks() Locks {
	o := Locks{Wanted: s.wanted, Fail: s.failing}
	for contract, l := range s.leases.of {
		if l.lease.Holder != s.holder() {
			continue
		}
		o.Held = append(o.Held, contract)
		if renew := l.lease.RenewedAt.Add(locks.RenewAfter); o.Renew.IsZero() || renew.Before(o.Renew) {
			o.Renew = renew
		}
		if l.lost != (locks.Holder{}) {
			o.Reclaimed = append(o.Reclaimed, Contender{Contract: contract, Who: l.lost.For("shop")})
		}
	}
	slices.Sort(o.Held)
	slices.SortFunc(o.Reclaimed, func(a, b Contender) int { return compareText(a.Contract, b.Contract) })
	_, busy := locks.Choose(s.survey())
	for _, w := range busy {
		o.Busy = append(o.Busy, Contender{Contract: w.Contract, Who: w.Holder.For("shop"), Before: w.Before})
	}
	return o
}

func compareText(a, b string) int { return slices.Compare([]byte(a), []byte(b)) }

// heldVersions are the versions of the Leases that the Feature holds, by contract.
func (s *sim) heldVersions() map[string]int {
	held := map[string]int{}
	for contract, l := range s.leases.of {
		if l.lease.Holder == s.holder() {
			held[contract] = l.version
		}
	}
	return held
}

// version of the Lease of a contract; 0 where there is none.
func (l *leases) version(contract string) int {
	if is := l.of[contract]; is != nil {
		return is.version
	}
	return 0
}

// freeLock frees a lock.
func (s *sim) freeLock(contract string) {
	if s.working() > 0 {
		s.fail("the lock of %s is freed while pods work", contract)
	}
	delete(s.leases.of, contract)
}

// missing are the wanted locks that the Feature does not hold.
func (s *sim) missing() []string {
	held := s.lookAtLocks().Held
	return slices.DeleteFunc(slices.Clone(s.wanted), func(c string) bool { return slices.Contains(held, c) })
}

// entitled are the contracts that orders would say are locked.
func (s *sim) entitled() []string {
	return slices.DeleteFunc(slices.Clone(s.memory.Locks), func(c string) bool {
		l := s.leases.of[c]
		return l == nil || !l.lease.HeldBy(s.holder(), s.now)
	})
}

// checkLocks: a lock that the status stops naming was lost, or no pod has anything more to say under it.
func (s *sim) checkLocks(m Memory) {
	if s.run != nil && s.run.Final != nil && s.run.Final.Epoch == m.Attempt {
		return // the pod said its last word
	}
	held := s.lookAtLocks().Held
	for _, contract := range s.memory.Locks {
		if slices.Contains(held, contract) && !slices.Contains(m.Locks, contract) && s.working() > 0 && s.spec.DeletedAt.IsZero() {
			s.fail("the status stops naming the lock of %s while a pod works", contract)
		}
	}
}
