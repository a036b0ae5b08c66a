// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// firstPause between two attempts is that of a Job whose pods fail (10 s, doubled each time); longestPause is that of
	// a container that crashes again and again (5 minutes).
	firstPause, longestPause = 10 * time.Second, 5 * time.Minute
	// errandPause is waited between two seal runs that requests were made for.
	errandPause = 3 * time.Second
	// sealPause is waited between two seal runs, should the first one not settle what it was made for.
	sealPause = 30 * time.Second
)

// backoff is the pause before what failed nth times in a row is tried again; nothing failed where nth is 0.
func backoff(nth int) time.Duration {
	if nth < 1 {
		return 0
	}
	// Ten times doubled is above the longest pause, and no shift can overflow.
	return min(firstPause<<min(nth-1, 10), longestPause)
}

// earliest is when the next attempt may start. The more often the agent failed, or the more attempts were lost in a row,
// the later: an agent or a pod that can never live does not keep the cluster, the Git server and a model busy. A person
// who asks for a retry need not wait.
func (s situation) earliest(next nextRun, run RunKind, errand bool) time.Time {
	if s.m.Attempt == 0 || s.m.Job == nil {
		return time.Time{}
	}
	after := pause(s, next.granted)
	if f := s.final(); run == RunSeal && s.m.Job.Run == RunSeal && f != nil {
		again := sealPause
		if errand {
			again = errandPause
		}
		after = max(after, again)
	}
	return s.m.Job.EndedAt.Add(after)
}

// pause after the last attempt because of how it ended; none where a retry was granted.
func pause(s situation, granted bool) time.Duration {
	f := s.final()
	switch {
	case granted || len(s.granted) > 0:
		return 0
	case f == nil, s.unanswered(f):
		return backoff(s.m.Lost - 1)
	case f.Outcome == protocol.OutcomeAgentFailed && !s.m.Job.Errand && failures.Excuses(f.Failure) && s.m.Unserved != nil:
		return s.m.Unserved.pause(s.o.Policy.Hash, s.o.Backends)
	case f.Outcome == protocol.OutcomeAgentFailed && !s.m.Job.Errand:
		return backoff(s.failures(f))
	default:
		return 0
	}
}

// follows says when another attempt starts, for the end of a sentence, and how a user makes it start at once. The time
// is that of the clock and not one that is left: the message stays as it is while the pause lasts.
func (s situation) follows(granted bool) string {
	after := pause(s, granted)
	if after == 0 {
		return "."
	}
	return fmt.Sprintf(" after a pause of %s, at %s. To start it at once, ask with %s.",
		after, s.m.Job.EndedAt.Add(after).UTC().Format(time.RFC3339), s.retryHint())
}
