// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/deliveries"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// Phase summarises a Feature for users.
type Phase string

// Phases of a Feature.
const (
	Pending       Phase = "Pending"
	Preparing     Phase = "Preparing"
	Running       Phase = "Running"
	AwaitingInput Phase = "AwaitingInput"
	ReadyToMerge  Phase = "ReadyToMerge"
	Delivered     Phase = "Delivered"
	Blocked       Phase = "Blocked"
	Failed        Phase = "Failed"
	Suspended     Phase = "Suspended"
)

// Memory is the controller's own part of a Feature's status.
type Memory struct {
	ObservedGeneration int64
	Phase              Phase
	Conditions         []Condition
	Attempt            int64
	// Failures is the number of attempts that count for the retries of the Feature.
	Failures  int
	Lost      int
	Unordered int
	// TaskFailures is the number of attempts whose agent failed in a task that is aborted after too many failures, since the spec changed.
	TaskFailures        int
	Unserved            *Unserved
	Job                 *JobMemory
	Branch              string
	Head                string
	LastCheckpoint      string
	LastValidCheckpoint string
	Checkpoints         Counts
	// Rollbacks is the number of rollbacks of the workspace so far, and the newest one.
	Rollbacks     Rollbacks
	Policy        PolicyRef
	Locks         []string
	Requests      []RequestResult
	StartedAt     time.Time
	FinishedAt    time.Time
	ActiveSeconds int64
	// Deliveries of others that concern the Feature.
	Deliveries []deliveries.Notice
	// Heeds are how many of their last directives agents have addressed, for the reviewers with enough of them.
	Heeds []review.Heed
}

// JobMemory is what the status has about the current attempt's Job.
type JobMemory struct {
	Name string
	Run  RunKind
	// Errand is true for a seal run that was started for requests.
	Errand bool
	// Mode that the pod of an agent run is made for.
	Mode string
	// Strategy that the attempt runs by to its end, and StrategyReason where Tidewaiter has chosen it.
	Strategy, StrategyReason string
	PodName                  string
	PodUID                   string
	StartedAt                time.Time
	// WaitingSince is the time since which the attempt waits for a user or for the start of its pod; zero if it does not wait. WaitedSeconds
	// is the sum of its earlier waits.
	WaitingSince    time.Time
	WaitedSeconds   int64
	StopRequestedAt time.Time
	EndedAt         time.Time
}

// RequestResult is the result of a request.
type RequestResult struct {
	ID      string
	State   RequestState
	Message string
	At      time.Time
}

// RequestState is the outcome of a request.
type RequestState string

// States of requests.
const (
	RequestDone   RequestState = "Done"
	RequestFailed RequestState = "Failed"
)

// Status of a condition.
type Status string

// Statuses.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// Condition is one statement about a Feature.
type Condition struct {
	Type    string
	Status  Status
	Reason  string
	Message string
}

// Condition returns the condition of a type; the zero value when there is none.
func (m Memory) Condition(name string) Condition {
	for _, c := range m.Conditions {
		if c.Type == name {
			return c
		}
	}
	return Condition{}
}

// clone returns a copy that shares nothing which a decision changes.
func (m Memory) clone() Memory {
	m.Conditions = slices.Clone(m.Conditions)
	m.Requests = slices.Clone(m.Requests)
	if m.Job != nil {
		job := *m.Job
		m.Job = &job
	}
	if m.Unserved != nil {
		unserved := *m.Unserved
		m.Unserved = &unserved
	}
	return m
}
