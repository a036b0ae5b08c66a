// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"cmp"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Backoff of a push that failed: it doubles from the first to the last.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 30 * time.Second
	// maxDeliveries is how often a delivery is tried before a user must act: with these pauses, for an hour. A server that
	// is down comes back by then, and a refusal that does not change needs no pod that waits.
	maxDeliveries = 120
)

// move takes a new head: what was said of the one before does not hold for it.
func (d *Delivery) move(head, tree string, changed bool) {
	if d.Head != head {
		d.Reviewed, d.Objection, d.ObjectionReason, d.Squashed, d.Knowledge, d.Refusal = false, "", "", "", "", nil
	}
	d.Head, d.Tree, d.Changed = head, tree, changed
}

// Reviewed: the review checked base…head under the policy with the hash.
type Reviewed struct {
	PolicyHash string
	// Objection is empty if the delivery is allowed; Reason is the protocol's reason for it.
	Objection, Reason string
	// Head is the commit to deliver and Tree its tree, if they differ from the reviewed ones: a single commit on the base, because of Squashed, or a
	// commit with the documents of reviewers. Both are empty otherwise.
	Head, Tree, Squashed string
	// Knowledge says which of these documents the delivery has; empty if there are none.
	Knowledge string
}

func (e Reviewed) apply(s *State, _ time.Time) {
	s.idle()
	d := &s.Delivery
	if e.Head != "" { // the same work, so that what was said of its history holds
		squashed := cmp.Or(e.Squashed, d.Squashed)
		d.move(e.Head, cmp.Or(e.Tree, d.Tree), d.Changed)
		d.Squashed = squashed
	}
	d.Knowledge = e.Knowledge
	d.Reviewed, d.Objection, d.ObjectionReason = e.PolicyHash == s.PolicyHash, e.Objection, e.Reason
}

// Pushed: the server has taken the commit.
type Pushed struct {
	Commit string
}

func (e Pushed) apply(s *State, _ time.Time) {
	s.idle()
	s.Delivery.Pushed, s.Delivery.Fault = e.Commit, nil
}

// Refused: the server refuses the head for good.
type Refused struct {
	Fault protocol.Fault
	// Overtaken: the branch has an earlier commit of this Feature that the head does not follow. Another review makes one that does.
	Overtaken bool
}

func (e Refused) apply(s *State, _ time.Time) {
	s.idle()
	d := &s.Delivery
	d.Fault = nil
	if e.Overtaken && !d.Overtaken {
		d.Overtaken, d.Reviewed = true, false
		return
	}
	d.Refusal = &e.Fault
}

// Undelivered: a review or push failed, and may succeed later.
type Undelivered struct {
	Fault protocol.Fault
}

func (e Undelivered) apply(s *State, now time.Time) {
	s.idle()
	d := &s.Delivery
	d.Fault = &e.Fault
	d.RetryAt = now.Add(min(lastRetry, firstRetry<<min(d.Failures, 8)))
	d.Failures++
}
