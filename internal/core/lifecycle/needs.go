// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Need is a fact that a decision lacks. Once it is gathered, the decision is taken again.
type Need string

// MaxNeeds is the most needs before a complete decision: each of them once.
const MaxNeeds = 4

const (
	// NeedLive is the state at the API server itself: see Observed.Live.
	NeedLive Need = "Live"
	// NeedAdmission is what decides between Features that want to start: Observed.Capacity and Observed.Areas with everything that has been admitted.
	// A Feature whose decision is to start then counts for the next one from the same moment.
	NeedAdmission Need = "Admission"
	// NeedLocks are the locks of the plan's contracts: the controller takes all of them or none.
	NeedLocks Need = "Locks"
	// NeedJob is the Job of the attempt that Decision.Start describes, made, or an obstacle that says why it cannot be made.
	NeedJob Need = "Job"
)

// Needs are all needs, in the order in which they are gathered.
func Needs() []Need { return []Need{NeedLive, NeedAdmission, NeedLocks, NeedJob} }

// Outdates reports whether a need makes the rest of its decision invalid: do and write nothing before the fact is gathered.
func (n Need) Outdates() bool { return n == NeedLive }

// Admits reports whether a decision after NeedAdmission is to start: nothing of other Features is in its way any more.
func (n Need) Admits() bool { return n == NeedLocks || n == NeedJob }
