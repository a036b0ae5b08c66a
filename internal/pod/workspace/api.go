// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace turns what an agent left on its volume into immutable Git trees, and trees back into files. The volume is hostile: the
// package opens everything beneath its root without following links, reads it once, and records what it read. No git process ever runs
// there.
package workspace

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// ErrClosed is returned by an engine after Close.
var ErrClosed = errors.New("workspace engine is closed")

// ErrBusy is returned by Written while the engine does something else, such as a sweep.
var ErrBusy = errors.New("workspace engine is busy")

// ErrNotRestored is wrapped when a restored workspace does not equal the tree: something still writes there, or a path
// cannot be changed. The text names the path.
var ErrNotRestored = errors.New("workspace does not equal the tree")

// Options of an engine.
type Options struct {
	// Root of the workspace volume.
	Root string
	// Repository that trees are written to and read from.
	Repository *git.Repository
	// Scratch is a directory on the trusted volume that the engine may fill and empty.
	Scratch string
	// ReadLimit in bytes: a larger file is found TooLarge and not read. Default 256 MiB.
	ReadLimit int64
	// MaxEntries bounds the files and directories that a scan visits; beyond it the snapshot is incomplete, with the counts so far. Defaults to 1,000,000.
	MaxEntries int64
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger for findings; the default discards them.
	Logger *slog.Logger
}

// Freezer stops and resumes the agent's processes.
type Freezer interface {
	// Freeze returns when no process of the agent can run user code, or with Settled false when that could not be had.
	Freeze(ctx context.Context) (Frozen, error)
	// Thaw lets them run again. The engine calls it after every Freeze, even a failed one. An error says that the freeze did not last until
	// now: the capture is then unsettled.
	Thaw(ctx context.Context) error
}

// Frozen is the result of a Freezer.
type Frozen struct {
	// Processes that were stopped.
	Processes int
	// Settled is true when none of them can run user code any more.
	Settled bool
	// Reason says what kept running when Settled is false.
	Reason string
}

// Limits are what a policy lets a workspace hold; zero means unlimited. The engine counts what is beyond them and does not read it.
type Limits struct {
	// MaxFileSize in bytes: a larger file is found TooLarge, and its content is not stored.
	MaxFileSize int64
	// MaxBytes and MaxFiles bound a capture. If there is more, the engine reads nothing: the snapshot is Incomplete.
	MaxBytes, MaxFiles int64
}

// Still says how a capture may hold the workspace still, and its limits of reading.
type Still struct {
	// Limits of the policy. They hold for later restores too.
	Limits Limits
	// Freezer is nil when no agent runs: the workspace is then expected to be quiet.
	Freezer Freezer
	// AtOnce freezes first, without trying to do without (the pod is about to end).
	AtOnce bool
	// KeepFrozen leaves the agent frozen after a freeze that this capture made, so that a restore can follow; the
	// caller thaws. Snapshot.Frozen says whether there was one.
	KeepFrozen bool
}

// Snapshot is one captured state of the workspace. Its objects are durable in the trusted repository.
type Snapshot struct {
	// Tree of everything that Git can hold and the base's rules do not ignore.
	Tree objects.ID
	// Previous is the tree of the capture before, or of the last Reset or Restore.
	Previous objects.ID
	// Changes from the base to Tree, sorted by path: every one of them.
	Changes []judge.Change
	// Found lists what is not in the tree, sorted by path. At most maxFound are listed of each kind; FoundTotal counts all.
	Found []judge.Found
	// FoundTotal counts all findings.
	FoundTotal int64
	// Workspace counts files and bytes, ignored ones included, the root's .git too.
	Workspace judge.Workspace
	// At is the time that the snapshot represents.
	At time.Time
	// Settled is true when the snapshot is one state that the workspace was in. Only then may it be promoted.
	Settled bool
	// Reason says what moved or could not be read when Settled is false.
	Reason string
	// Incomplete is true if the tree lacks something that Found and Workspace report. That is files without permission to read, or all new
	// content if there is more than the limits allow. Do not promote such a tree.
	Incomplete bool
	// Frozen says whether the agent was frozen for it, FrozenFor how long, Processes how many were.
	Frozen    bool
	FrozenFor time.Duration
	Processes int
	// Transient are names that appeared and disappeared since the last recorded capture; see Engine.Recorded.
	Transient Transient
	// Dirty counts the paths that were read.
	Dirty int
	// CaptureTime is the time until everything was read, SyncTime the time to make it durable.
	CaptureTime time.Duration
	SyncTime    time.Duration
}

// Restored is the result of a restore.
type Restored struct {
	// Tree of the workspace now, as hashed after the restore.
	Tree objects.ID
	// Written and Deleted paths, counted.
	Written int
	Deleted int
	// Cleared counts names that the restore removed although they may be ignored, because the volume held more files than the engine scans.
	Cleared int
}

// AgentGit describes the agent's own throw-away repository.
type AgentGit struct {
	// Commit that HEAD names.
	Commit objects.ID
	// Base is the commit whose history the trusted repository keeps in packs, which are copied as they are; zero for none.
	Base objects.ID
	// Branch that is checked out, such as "tidewaiter/add-login".
	Branch string
	// AuthorName and AuthorEmail are configured as the agent's identity.
	AuthorName  string
	AuthorEmail string
}

// Assumptions are the properties of the volume that the engine tests when it opens. If one does not hold, the engine is slower, never blind.
type Assumptions struct {
	// Openat2 is required: without it Open fails.
	Openat2 bool
	// Leases find files with a live writer; without them every capture freezes.
	Leases bool
	// MappedWrites change a file's ctime. Where they do not (memory-backed volumes) every capture hashes everything.
	MappedWrites bool
	// ChangeTime advances with every change. Where it does not every capture hashes everything.
	ChangeTime bool
	// Watches deliver events. Where they do not the workspace is scanned.
	Watches bool
	// Full: the volume had no room for the test, so it is unknown whether any of the above holds. See Engine.ClearIgnored.
	Full bool
	// Notes say what failed, for the log.
	Notes []string

	// untested is why the volume could not be tested to the end.
	untested error
}
