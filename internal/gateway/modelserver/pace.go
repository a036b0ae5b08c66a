// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"net/http"
	"time"
)

// pace counts a call of a Feature, whatever becomes of it, and refuses one that is too fast. What is refused here does not count, so that the
// next call may be made when Retry-After says.
func (s *Server) pace(caller Caller) *failure {
	wait, again := s.rates.Take(caller.Feature, caller.Rate.PerMinute, s.options.Now())
	if wait == 0 {
		return nil
	}
	seconds := int((wait + time.Second - 1) / time.Second) // no sooner than it may be made
	f := fail(http.StatusTooManyRequests, reasonRate, nil, "the Feature makes more than %d model calls a minute: make the next one in %d s. If it needs more, raise budget.callsPerMinute of the SupervisorPolicy (%s)",
		caller.Rate.PerMinute, seconds, caller.Rate.Origin)
	f.wait, f.repeated = seconds, again
	return f
}
