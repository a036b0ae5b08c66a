// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"cmp"
	"slices"
	"time"
)

// Wanted is a lock that a Feature wants.
type Wanted struct {
	Contract string
	State    Availability
	// Holder of the lock; zero if there is none.
	Holder Holder
	// Before says that Holder only waits for it, and comes first.
	Before bool
}

// Choose says which locks to take, and in which sequence: all wanted ones, or none while another Feature holds one of them. It then names
// the held ones. So no Feature waits while it holds a lock, and none waits for a waiting one. Because all take locks in the same sequence,
// one of two Features that start at the same time gets the first lock that both want.
func Choose(wanted []Wanted) (take, busy []Wanted) {
	sorted := slices.SortedFunc(slices.Values(wanted), func(a, b Wanted) int { return cmp.Compare(a.Contract, b.Contract) })
	for _, w := range sorted {
		if w.State == Busy || w.Before && w.State != Mine {
			busy = append(busy, w)
		}
	}
	if len(busy) > 0 {
		return nil, busy
	}
	return sorted, nil
}

// Waiter is a Feature that waits for locks.
type Waiter struct {
	Holder
	// Priority: the higher comes first.
	Priority int32
	// Since is when the Feature was made: the older comes first.
	Since time.Time
	// Locks by their names.
	Locks []string
}

// First is the first Feature that waits for a lock and comes before me: higher priority, then older, then by name. ok is false if there is none.
func First(me Waiter, waiting []Waiter, lock string) (first Waiter, ok bool) {
	first = me
	for _, w := range waiting {
		if w.UID != me.UID && slices.Contains(w.Locks, lock) && w.compare(first) < 0 {
			first, ok = w, true
		}
	}
	return first, ok
}

func (w Waiter) compare(other Waiter) int {
	return cmp.Or(
		cmp.Compare(other.Priority, w.Priority),
		w.Since.Compare(other.Since),
		cmp.Compare(w.Namespace, other.Namespace),
		cmp.Compare(w.Name, other.Name),
	)
}
