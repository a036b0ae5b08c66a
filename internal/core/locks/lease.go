// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"strings"
	"time"
)

const (
	// TTL is how long a lock lasts without renewal: long enough for a manager to be replaced meanwhile, short enough
	// not to keep others waiting for one who is gone. The figure comes from the specification of locks.
	TTL = 300 * time.Second
	// RenewAfter is the age at which a held lock is renewed: two renewals may fail before it expires.
	RenewAfter = TTL / 3
)

// Holder is the Feature that holds a lock.
type Holder struct {
	Namespace string
	Name      string
	// UID distinguishes a Feature from a later one of the same name.
	UID string
}

// String is the holder as a Lease names it: namespace/name/uid.
func (h Holder) String() string {
	if h == (Holder{}) {
		return ""
	}
	return h.Namespace + "/" + h.Name + "/" + h.UID
}

// ParseHolder reads what String writes. Any other text is an unknown holder.
func ParseHolder(text string) Holder {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return Holder{Name: text}
	}
	return Holder{Namespace: parts[0], Name: parts[1], UID: parts[2]}
}

// For describes the holder to users of a namespace, without the names of what runs in other namespaces.
func (h Holder) For(namespace string) string {
	if h.Namespace != namespace {
		return "a Feature of another project"
	}
	return "Feature " + h.Name
}

// Lease is a lock as it was read.
type Lease struct {
	// Version of the Lease; empty if there is none.
	Version string
	// Holder of the lock; zero for nobody.
	Holder Holder
	// RenewedAt is when the holder last renewed it, by the holder's clock.
	RenewedAt time.Time
	// TTL of the holder; 0 means the constant TTL.
	TTL time.Duration
}

// Live reports whether the Lease has not expired, by its own time.
func (l Lease) Live(now time.Time) bool { return now.Before(l.RenewedAt.Add(l.ttl())) }

// HeldBy reports whether a Feature holds the lock now. What an agent may do rests on it.
func (l Lease) HeldBy(h Holder, now time.Time) bool {
	return l.Version != "" && l.Holder == h && l.Live(now)
}

func (l Lease) ttl() time.Duration {
	if l.TTL <= 0 {
		return TTL
	}
	return l.TTL
}

// Availability of a lock, for one who wants it.
type Availability string

// States of locks.
const (
	// Free: nobody has it.
	Free Availability = "Free"
	// Mine: the caller has it, perhaps without a record of it.
	Mine Availability = "Mine"
	// Busy: another has it.
	Busy Availability = "Busy"
	// Expired: another had it and does not renew it any more.
	Expired Availability = "Expired"
)

// State of the lock for me. The argument unchanged is for how long the caller has seen this version of the Lease. It has to be a whole TTL
// by one clock, so that neither a wrong clock nor an absent manager takes a lock from a holder that would renew it.
func (l Lease) State(me Holder, unchanged time.Duration, now time.Time) Availability {
	switch {
	case l.Version == "" || l.Holder == Holder{}:
		return Free
	case l.Holder == me:
		return Mine
	case unchanged >= l.ttl() && !l.Live(now):
		return Expired
	default:
		return Busy
	}
}
