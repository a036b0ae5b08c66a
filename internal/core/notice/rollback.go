// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// maxNamed bounds the paths that a sentence names.
const maxNamed = 5

// Rollback says that files went back because a user asked.
type Rollback struct {
	Type string `json:"type"`
	// RequestID and Kind of the request.
	RequestID string `json:"request_id"`
	Kind      string `json:"kind"`
	// CheckpointID keeps the state before; RestoredFrom is the one gone back to, absent for the last valid state.
	CheckpointID  string    `json:"checkpoint_id"`
	RestoredFrom  string    `json:"restored_from,omitempty"`
	Timestamp     time.Time `json:"timestamp"`
	FilesReverted []string  `json:"files_reverted"`
	ChangesKept   int       `json:"changes_kept"`
	ActionTaken   string    `json:"action_taken"`
	Message       string    `json:"message"`
}

// Reverted is the result of a rollback.
type Reverted struct {
	// Request is the id of the request, Kind one of the contract's kinds of rollback.
	Request, Kind string
	// Before is the name of the checkpoint with the state before, To the name of the restored one, empty for the last valid state. From
	// describes the restored state in words.
	Before, To, From string
	At               time.Time
	// Paths that went back, and how many changes stayed.
	Paths []string
	Kept  int
}

// RolledBack reports a rollback.
func RolledBack(r Reverted) Rollback {
	n := Rollback{
		Type: "rollback", RequestID: r.Request, Kind: strings.ToLower(r.Kind), CheckpointID: r.Before, RestoredFrom: r.To,
		Timestamp: r.At.UTC(), FilesReverted: []string{}, ChangesKept: r.Kept, ActionTaken: reverted,
		Message: "Reverted " + plural(len(r.Paths), "file"),
	}
	for _, path := range r.Paths[:min(len(r.Paths), MaxFiles)] {
		n.FilesReverted = append(n.FilesReverted, Path(path))
	}
	switch r.Kind {
	case protocol.RollbackSmart:
		n.Message += fmt.Sprintf(" with violations: %s. Kept %s", Names(r.Paths), plural(r.Kept, "valid change"))
	case protocol.RollbackPaths:
		n.Message += fmt.Sprintf(": %s. Kept %s", Names(r.Paths), plural(r.Kept, "other change"))
	default:
		n.Message += ": " + Names(r.Paths)
	}
	n.Message += fmt.Sprintf(". As in %s; the state before it is checkpoint %s", r.From, r.Before)
	return n
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Names are the first paths of a list, for users.
func Names(paths []string) string {
	var names []string
	for _, path := range paths[:min(len(paths), maxNamed)] {
		names = append(names, judge.Escape(path))
	}
	if more := len(paths) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
