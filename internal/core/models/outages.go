// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"maps"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Reach is the state of a gateway's connection to a backend with the platform's key.
type Reach struct {
	Backend string `json:"backend"`
	// Avoided is since when the gateway keeps all calls away; zero if it does not.
	Avoided time.Time `json:"avoided,omitzero"`
	// Answered is the time of its last answer; zero if there is none since the gateway began.
	Answered time.Time `json:"answered,omitzero"`
}

// Outage of a backend for everybody.
type Outage struct {
	Backend string
	// Since when a gateway keeps everybody away from it.
	Since time.Time
}

// Outages are the backends from which a gateway keeps all calls away and that have answered no gateway since, by name. One gateway may
// notice first: an outage counts once each of the others has had the time to get an answer, and has published its state.
func (f Fleet) Outages() []Outage {
	since := map[string]time.Time{}
	for _, in := range f {
		for _, r := range in.Reached {
			first, known := since[r.Backend]
			if !r.Avoided.IsZero() && f.said(r.Avoided.Add(InForceEvery)) && r.Avoided.After(f.answered(r.Backend)) && (!known || r.Avoided.Before(first)) {
				since[r.Backend] = r.Avoided
			}
		}
	}
	var out []Outage
	for _, backend := range slices.Sorted(maps.Keys(since)) {
		out = append(out, Outage{Backend: backend, Since: since[backend]})
	}
	return out
}

// Over says that the backend of an outage has answered since, or that the gateways do not have it any more. It is false if no gateway says anything.
func (f Fleet) Over(o Outage) bool {
	gone := len(f) > 0
	for _, in := range f {
		gone = gone && !slices.ContainsFunc(in.Backends, func(b Backend) bool { return b.Name == o.Backend })
	}
	return gone || f.answered(o.Backend).After(o.Since)
}

// OutFor reports whether the backend of a policy's primary model is out for a dialect, or for any dialect if that is empty. An outage does
// not concern calls with a project's own key.
func (f Fleet) OutFor(dialect string, refs []policy.ModelRef) bool {
	primary := slices.IndexFunc(refs, func(r policy.ModelRef) bool { return r.Role == policy.RolePrimary })
	return slices.ContainsFunc(f.Outages(), func(o Outage) bool {
		if primary >= 0 {
			return refs[primary].Backend == o.Backend && refs[primary].Key == (policy.SecretKey{})
		}
		for _, in := range f {
			i := slices.IndexFunc(in.Backends, func(b Backend) bool { return dialect == "" || slices.Contains(b.Dialects, dialect) })
			if i >= 0 && in.Backends[i].Name == o.Backend {
				return true
			}
		}
		return false
	})
}

// said reports whether every gateway has said something at a time or later.
func (f Fleet) said(at time.Time) bool {
	for _, in := range f {
		if in.Renewed.Before(at) {
			return false
		}
	}
	return true
}

// answered is when a backend has answered any gateway last.
func (f Fleet) answered(backend string) (last time.Time) {
	for _, in := range f {
		for _, r := range in.Reached {
			if r.Backend == backend && r.Answered.After(last) {
				last = r.Answered
			}
		}
	}
	return last
}
