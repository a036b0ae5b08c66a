// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

const (
	// HistoryPath of the gateway takes one entry of a Feature's history: the watchdog of the Feature's pod posts a HistoryEntry, in gzip, with the
	// pod's token. Entries that the ledger already has stay unchanged.
	HistoryPath = "/v1/history"
	// HistoryListPath is the path of the gateway's LedgerPort that lists them. Its parameters: feature (a UID), task (a name; without it, all
	// tasks), and after and limit for a list. With entry (a Sequence) it returns one entry with its text, and with reviewer (a name) the newest question for
	// that reviewer with its text.
	HistoryListPath = "/v1/history-list"
	// MaxHistory of one answer.
	MaxHistory = 500
	// MaxHistoryEntries of a Feature. The ledger refuses what comes after them, so that no agent can push out the record of what it did before.
	// It is enough for 2,048 tasks with eight entries each.
	MaxHistoryEntries = 20_000
)

// Bounds of a HistoryEntry, in bytes.
const (
	MaxHistoryMessage = 1 << 10
	MaxHistoryText    = 64 << 10
	// MaxHistoryBytes bounds its JSON, in which characters may be written as several.
	MaxHistoryBytes = 512 << 10
)

// Kinds of a HistoryEntry.
const (
	HistoryAttempt  = "Attempt"
	HistoryPlan     = "Plan"
	HistoryTask     = "Task"
	HistoryGate     = "Gate"
	HistoryQuestion = "Question"
	HistoryAnswer   = "Answer"
	HistoryReview   = "Review"
	// HistoryReviewQuestion is the question that a model got for a reviewer, which is its text.
	HistoryReviewQuestion = "ReviewQuestion"
)

// Events of entries, by their kinds. An attempt ends with its outcome, a gate has its state as the event, and a review its outcome.
const (
	// HistoryBegun of an attempt or a task.
	HistoryBegun = "Begun"
	// HistoryProposed and HistoryApproved of a plan, and HistoryUnavailable where there is none.
	HistoryProposed    = "Proposed"
	HistoryApproved    = "Approved"
	HistoryUnavailable = "Unavailable"
	// Events of a task. Ended: the agent's process has ended. Completed: the agent says that it is done. Done: its closing checkpoint is taken
	// and its gates have passed. Added: an agent gets this task, because gates before the delivery have failed or directives of reviewers are open. Dropped: the orders no longer list it.
	// Aborted: it cannot be done, and the work continues without it.
	HistoryCorrected = "Corrected"
	HistoryRestarted = "Restarted"
	HistoryRejected  = "Rejected"
	HistoryParked    = "Parked"
	HistoryEnded     = "Ended"
	HistoryCompleted = "Completed"
	HistoryDone      = "Done"
	HistoryAdded     = "Added"
	HistoryDropped   = "Dropped"
	HistoryAborted   = "Aborted"
	// HistoryAsked of a question for whose answer the agent waits, and of the question for a reviewer. HistoryGuessed of a question for whose answer the agent
	// does not wait.
	HistoryAsked   = "Asked"
	HistoryGuessed = "Guessed"
	// HistoryGiven of an answer.
	HistoryGiven = "Given"
)

// Causes of corrections and restarts of a task.
const (
	// CauseCheckpoint: the closing checkpoint is not valid. CauseGate: a gate of the task has failed. CauseDeliveryGate: a gate before the delivery
	// has. CauseSteering: the watchdog acts against an anomaly. CauseDirectives: directives of reviewers are open after the last task.
	CauseCheckpoint   = "Checkpoint"
	CauseGate         = "Gate"
	CauseDeliveryGate = "DeliveryGate"
	CauseSteering     = "Steering"
	CauseDirectives   = "Directives"
)

// HistoryCauses are all of them.
func HistoryCauses() []string {
	return []string{CauseCheckpoint, CauseGate, CauseDeliveryGate, CauseSteering, CauseDirectives}
}

// HistoryEntry is one thing that happened in a Feature. Some of its texts come from the agent, a model or a gate.
type HistoryEntry struct {
	// Sequence grows over all entries of the Feature; it has gaps. It follows from the place of a record in the journal.
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time"`
	Attempt  int64     `json:"attempt"`
	// Kind is one of the kinds of a HistoryEntry, and Event what happened.
	Kind  string `json:"kind"`
	Event string `json:"event"`
	// Cause of a correction or a restart; empty for anything else.
	Cause string `json:"cause,omitempty"`
	// Task that it is about; empty for the whole Feature, as with a gate before the delivery.
	Task string `json:"task,omitempty" redact:"key"`
	// Name of the gate, the question, the reviewer, or the kind of run of the attempt; the hash of the plan.
	Name string `json:"name,omitempty" redact:"key"`
	// Tree that the gate ran on, and its Duration in milliseconds.
	Tree     string `json:"tree,omitempty" redact:"key"`
	Duration int64  `json:"duration,omitempty"`
	// ExitCode of a gate, or of the agent of a task.
	ExitCode int `json:"exitCode,omitempty"`
	// Message in a line.
	Message string `json:"message,omitempty"`
	// Text of it: the proposed plan as JSON, the end of a gate's output, the question, the answer, what came of a review, the question for a reviewer, or what the watchdog tells the agent. Only if the caller
	// asks for one entry.
	Text string `json:"text,omitempty"`
	// Findings of a review, for metrics; nil for anything else. The ledger does not store them: the text has them in words.
	Findings *Findings `json:"findings,omitempty"`
	// Missing says what Text lacks, and why; empty if it is complete.
	Missing string `json:"missing,omitempty"`
}

// Findings of a review.
type Findings struct {
	// Kept is how many became directives.
	Kept int `json:"kept"`
	// Discarded are the reasons why the others do not count, one for each.
	Discarded []string `json:"discarded,omitempty" redact:"key"`
}

// History is a list of entries of one Feature, sorted by Sequence.
type History struct {
	Entries []HistoryEntry `json:"entries"`
}
