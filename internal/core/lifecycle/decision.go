// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// Decision says what to do next. Acts are done first; Memory is written once afterwards, and Events leave after that.
type Decision struct {
	// Memory is what the status shall say.
	Memory Memory
	// Needs is the fact to gather next, after which the decision is taken again; empty when nothing is missing. While it is
	// NeedLive, there is nothing to do or to write. While it is another one, what else the decision says may be done
	// and written, should that fact not be had.
	Needs Need
	// Start is the new attempt that NeedJob is about. The attempt counts once its Job is observed.
	Start *Start
	// RenewLocks tells the controller to renew the held locks that are due.
	RenewLocks bool
	// Unlock names contracts whose locks to free: no status names them any more.
	Unlock []string
	// EnsureDependencies asks for everything that a running attempt depends on (network policy, CA bundle) to be as it should.
	EnsureDependencies bool
	// DeleteJobs names Jobs to delete.
	DeleteJobs []Object
	// DeletePods names pods to delete.
	DeletePods []Object
	// DeleteFeature asks for the Feature to be deleted: its time to live is over.
	DeleteFeature bool
	// Release asks for the finalizer to be removed: no pod is left.
	Release bool
	// Events to send once the status is written.
	Events []Event
	// Recheck is when to decide again without any event; 0 is never.
	Recheck time.Duration
}

// Start asks for the Job of a new attempt.
type Start struct {
	Attempt int64
	Run     RunKind
	// Mode of an agent run, in the policy's words: what its pod may write depends on it.
	Mode string
}

// Object names an object by name and uid, so that a new one of the same name is not meant.
type Object struct {
	Name string
	UID  string
}

// Event reports a change, once.
type Event struct {
	// Warning events call for attention.
	Warning bool
	Reason  string
	Message string
}
