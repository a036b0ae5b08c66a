// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// File modes as Git stores them.
const (
	ModeFile       uint32 = 0o100644
	ModeExecutable uint32 = 0o100755
	ModeSymlink    uint32 = 0o120000
	ModeGitlink    uint32 = 0o160000
)

// Kind of a change.
type Kind string

// Kinds of changes.
const (
	Added       Kind = "Added"
	Modified    Kind = "Modified"
	Deleted     Kind = "Deleted"
	TypeChanged Kind = "TypeChanged"
)

// Entry is one path of a tree.
type Entry struct {
	// Mode as Git stores it; 0 if the path does not exist.
	Mode uint32
	// ID is the hex object id.
	ID string
	// Size in bytes of a blob.
	Size int64
	// Target of a symbolic link, as stored.
	Target string
}

// Change is one path that differs between two trees. Path is the canonical path below the root, as bytes, with '/'.
type Change struct {
	Path string
	Kind Kind
	// Old is zero for Added, New for Deleted.
	Old, New Entry
}

// FoundKind is the kind of something in the workspace that Git cannot hold or that must not be there.
type FoundKind string

// Kinds of findings.
const (
	// FoundGitDir is a .git (in any spelling) below the root: a nested repository.
	FoundGitDir FoundKind = "GitDir"
	// FoundFIFO is a named pipe.
	FoundFIFO FoundKind = "FIFO"
	// FoundSocket is a Unix socket.
	FoundSocket FoundKind = "Socket"
	// FoundDevice is a block or character device.
	FoundDevice FoundKind = "Device"
	// FoundTooLarge is a file beyond the size that a capture reads; its content is not in the tree.
	FoundTooLarge FoundKind = "TooLarge"
	// FoundHardlink is a file of the tree that has another name outside of the capture, through which it can change.
	FoundHardlink FoundKind = "Hardlink"
	// FoundUnreadable is a file or directory whose permissions forbid reading it; the tree still has its last captured content. An empty path
	// is the root of the workspace.
	FoundUnreadable FoundKind = "Unreadable"
	// FoundTooDeep is a file or directory that is too deep, or has too long a path, to be read.
	FoundTooDeep FoundKind = "TooDeep"
)

// Found is something in the workspace that a tree cannot represent.
type Found struct {
	Path string
	Kind FoundKind
	Size int64
}

// Workspace has the totals of a capture, including ignored files.
type Workspace struct {
	Files int64
	Bytes int64
	// Uncounted says that there is more, and that counting ended here.
	Uncounted bool
}

// Input is everything that the result of Judge depends on.
type Input struct {
	// Changes from the base to the captured tree, sorted by path: every one of them.
	Changes []Change
	// Found lists what the capture found that the tree cannot represent.
	Found []Found
	// Workspace as counted.
	Workspace Workspace
	// Plan of the Feature.
	Plan protocol.Plan
	// Policy in effect.
	Policy policy.Effective
	// Role of the agent; may be empty.
	Role string
	// Locks are the contracts whose lock the Feature holds.
	Locks []string
	// Names lists directories of the captured tree. Judge reads only the directories of added paths. Without Names it cannot check added
	// paths, and reports them as violations.
	Names Lookup
	// BaseNames lists directories of the base. It distinguishes existing names from new ones; without it every pair of colliding names counts as new.
	BaseNames Lookup
	// Contents reads blobs of the base and of the captured tree. Judge reads files whose content changed. Without Contents it cannot check
	// them, and reports them as violations.
	Contents Contents
	// Compile compiles a check's expression; without it every check is violated.
	Compile func(expression string) (Program, error)
	// Cache of the calls before; may be nil.
	Cache *Cache
}

// Lookup lists the names in directories of a tree, in any order; "" is the root. Judge calls it at most once, for all directories at once,
// because an agent decides how many there are. The answer omits a directory that cannot be read, and has an entry without names for one
// that does not exist.
type Lookup func(dirs []string) map[string][]string

// Judgement is the outcome: violations are sorted worst first, then by path and rule.
type Judgement struct {
	Verdict protocol.Verdict `json:"verdict"`
	// Severity of the worst violation; empty if there is none.
	Severity policy.Severity `json:"severity,omitempty"`
	// Violations are all of them.
	Violations []protocol.Violation `json:"violations,omitempty"`
	// Lines is the number of changed lines. It does not affect the verdict.
	Lines LineCounts `json:"-"`
}
