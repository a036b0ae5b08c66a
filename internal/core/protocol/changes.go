// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

const (
	// ChangesPath of the gateway takes what a checkpoint has changed: the watchdog of the Feature's pod posts Changes, in gzip,
	// with the pod's token. Entries that the ledger already has stay unchanged.
	ChangesPath = "/v1/changes"
	// CheckpointPath is the path of the gateway's LedgerPort that returns them. Its parameters: feature (a UID) and checkpoint, or no
	// checkpoint for the newest.
	CheckpointPath = "/v1/checkpoint"
	// EventsPath is the path of that port that lists FileEvents. Its parameters: feature (a UID), after (the Sequence of an event) and limit.
	EventsPath = "/v1/events"
	// MaxEvents of one answer.
	MaxEvents = 1000
)

// Bounds of Changes in bytes, except MaxListed, a number of files. The patch holds about what a user reads in an hour. The list holds all
// MaxListed files if their names are as long as names in common repositories.
const (
	MaxPatch  = 1 << 20
	MaxListed = 20_000
	MaxNames  = 1 << 20
	// MaxChanges bounds their JSON, in which characters may be written as several.
	MaxChanges = 8 << 20
)

// Kinds of FileChange. ChangeOmitted stands for files that are not listed.
const (
	ChangeAdd     = "add"
	ChangeChange  = "change"
	ChangeUnlink  = "unlink"
	ChangeOmitted = "omitted"
)

// Changes are what a checkpoint has changed since the one before, without secrets. The agent chooses names and contents, so control
// characters of terminals are removed.
type Changes struct {
	// Checkpoint is its number, Previous that of the one before; 0 stands for the base.
	Checkpoint int64 `json:"checkpoint"`
	Previous   int64 `json:"previous"`
	// At is when it was captured.
	At      time.Time `json:"at"`
	Task    string    `json:"task,omitempty"`
	Verdict string    `json:"verdict"`
	Action  string    `json:"action"`
	// Files that were changed, of which Listed has as many as there is room for.
	Files  int64        `json:"files"`
	Listed []FileChange `json:"listed,omitempty"`
	// Patch in Git's unified format.
	Patch string `json:"patch,omitempty"`
	// Missing says what Patch does not have, and why; empty if it is whole.
	Missing string `json:"missing,omitempty"`
}

// FileChange is what happened to one file.
type FileChange struct {
	// Type is one of the kinds of FileChange.
	Type string `json:"type"`
	// Path is the path as it is if all of it is printable text, and quoted as in Go otherwise.
	Path string `json:"path"`
	// Size in bytes after the change, and Mode as Git has it; zero if the file is gone.
	Size int64  `json:"size"`
	Mode uint32 `json:"mode,omitempty"`
}

// FileEvents are the file events of one Feature, sorted by Sequence.
type FileEvents struct {
	Events []FileEvent `json:"events"`
}

// FileEvent is what happened to a file between two checkpoints.
type FileEvent struct {
	// Sequence grows over all events of the Feature; it has gaps.
	Sequence int64 `json:"sequence"`
	// CaptureTime is that of the Checkpoint.
	CaptureTime time.Time `json:"captureTime"`
	Checkpoint  int64     `json:"checkpoint"`
	// Type is one of the kinds of FileChange. An event of type ChangeOmitted has no path, and Count is the number of files that it represents.
	Type  string `json:"type"`
	Path  string `json:"path,omitempty"`
	Size  int64  `json:"size"`
	Mode  uint32 `json:"mode,omitempty"`
	Count int64  `json:"count,omitempty"`
}
