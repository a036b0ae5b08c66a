// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package locks

import "time"

// Sightings remember since when the Leases of awaited locks have not changed. The zero value is ready; it is not
// for several goroutines at a time.
type Sightings struct {
	of map[string]sighting
}

// sighting of a Lease.
type sighting struct {
	version     string
	since, last time.Time
}

// forgetAfter is when a Lease that nobody asks for any more is forgotten; those who wait ask more often.
const forgetAfter = 2 * TTL

// Unchanged notes that a Lease has a version now, and says for how long it has had it, as far as was seen.
func (s *Sightings) Unchanged(name, version string, now time.Time) time.Duration {
	seen, ok := s.of[name]
	if !ok || seen.version != version {
		s.forget(now)
		seen = sighting{version: version, since: now}
	}
	seen.last = now
	if s.of == nil {
		s.of = map[string]sighting{}
	}
	s.of[name] = seen
	return now.Sub(seen.since)
}

// forget drops what nobody asked for lately.
func (s *Sightings) forget(now time.Time) {
	for name, seen := range s.of {
		if now.Sub(seen.last) > forgetAfter {
			delete(s.of, name)
		}
	}
}
