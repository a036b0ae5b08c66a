// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trusted is the volume that an agent never sees: its owner, the journal of what is about to happen and what did, the refs of its
// repository, and the paths. It has one writer at a time; readers need no lock.
package trusted

import (
	"errors"
	"path/filepath"
)

var (
	// ErrCorrupt: something on the trusted volume is not as it was written.
	ErrCorrupt = errors.New("the trusted volume is damaged (restore it from a snapshot, or delete the Feature and create it again)")
	// ErrLater: a later version of Tidewaiter has written to the trusted volume, so this version must leave it as it is.
	ErrLater = errors.New("this version cannot continue the journal on the trusted volume")
	// ErrFenced: a newer attempt owns the trusted volume. This one must not change anything any more.
	ErrFenced = errors.New("a newer attempt owns the trusted volume")
	// ErrNoJournal: there is nothing to read.
	ErrNoJournal = errors.New("no journal")
)

// Dir is the mount path of a trusted volume.
type Dir string

// Repository is the bare Git repository of everything that was captured.
func (d Dir) Repository() string { return d.in("repo.git") }

// Scratch is for temporary files of a capture.
func (d Dir) Scratch() string { return d.in("scratch") }

// Spool holds the reports that intake has not acknowledged.
func (d Dir) Spool() string { return d.in("spool") }

// FileChanges is the log of file events.
func (d Dir) FileChanges() string { return d.in("logs", "file-changes.jsonl") }

// HandedOver says which checkpoints the gateway's ledger has.
func (d Dir) HandedOver() string { return d.in("handed-over.json") }

func (d Dir) journal() string { return d.in("journal.jsonl") }
func (d Dir) lock() string    { return d.in("lock") }
func (d Dir) epoch() string   { return d.in("epoch") }
func (d Dir) session() string { return d.in("session") }

func (d Dir) conversation() string { return d.in("conversation.json") }

func (d Dir) in(names ...string) string {
	return filepath.Join(append([]string{string(d)}, names...)...)
}
