// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "slices"

// Need is a fact that a decision lacks. Once it is gathered, the decision is taken again.
type Need string

// MaxNeeds is how many needs there are at most before a decision is there: each of them once, and NeedLive once more,
// because what was seen before NeedTurn may be outdated after it.
const MaxNeeds = 6

const (
	// NeedTurn is this Feature's turn to start: where starts are serial, one Feature at a time counts, compares and starts.
	// No facts are live any more when the turn comes.
	NeedTurn Need = "Turn"
	// NeedLive is how things stand at the API server itself: see Observed.Live.
	NeedLive Need = "Live"
	// NeedAreas are the areas of other Features, compared with those of this one.
	NeedAreas Need = "Areas"
	// NeedLocks are the locks of the plan's contracts, all of them taken or none.
	NeedLocks Need = "Locks"
	// NeedJob is the Job of the attempt that Decision.Start describes, made, or an obstacle that says why it cannot be made.
	NeedJob Need = "Job"
)

// Needs are all needs, in the order in which they are gathered.
func Needs() []Need { return []Need{NeedTurn, NeedLive, NeedAreas, NeedLocks, NeedJob} }

// first is the one of two needs that is gathered first; an empty one is none.
func first(a, b Need) Need {
	for _, n := range Needs() {
		if n == a || n == b {
			return n
		}
	}
	return ""
}

// Outdates reports whether a need leaves nothing of the decision that has it: nothing may be done or written before it
// is gathered.
func (n Need) Outdates() bool { return slices.Contains([]Need{NeedTurn, NeedLive}, n) }
