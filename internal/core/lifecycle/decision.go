// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// Decision says what to do next. The controller carries out the acts first, then writes Memory once, and then sends the Events.
type Decision struct {
	// Memory is the new content of the status.
	Memory Memory
	// Needs is the fact to gather before the next call of Next; empty if none is missing. If it is NeedLive, do and write nothing. If it is
	// another one and that fact is not available, the controller may still do and write what else the decision says.
	Needs Need
	// Start is the new attempt that NeedJob is about. The attempt counts once its Job is observed.
	Start *Start
	// RenewLocks tells the controller to renew the held locks that are due.
	RenewLocks bool
	// Unlock names contracts whose locks to free: no status names them any more.
	Unlock []string
	// EnsureDependencies tells the controller to create or correct everything that a running attempt depends on (network policy, CA bundle).
	EnsureDependencies bool
	// DeleteJobs names Jobs to delete.
	DeleteJobs []Object
	// DeletePods names pods to delete.
	DeletePods []Object
	// DeleteFeature tells the controller to delete the Feature: its time to live is over.
	DeleteFeature bool
	// Release tells the controller to remove the finalizer: no pod is left.
	Release bool
	// Events to send once the status is written.
	Events []Event
	// Recheck is when to decide again without any event; 0 is never.
	Recheck time.Duration
}

// Start tells the controller to create the Job of a new attempt.
type Start struct {
	Attempt int64
	Run     RunKind
	// Mode of an agent run, in the policy's words: what its pod may write depends on it.
	Mode string
	// Gate of a gate run.
	Gate Gate
}

// Object names an object by name and uid, so that a new one of the same name is not meant.
type Object struct {
	Name string
	UID  string
}

// Event reports a change once.
type Event struct {
	// Warning events call for attention.
	Warning bool
	Reason  string
	Message string
}
