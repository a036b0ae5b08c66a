// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

// Bounds of the stored changes of checkpoints, compressed, in bytes. Budgets bound model calls, but nothing bounds how often an agent
// rewrites its files, and its changes must not take the room for records of calls.
const (
	// MaxPatches of a Feature: about 100 MB of text. MaxNames is a little more, so that there is still room for the names of files when the
	// room for patches is used up.
	MaxPatches = 16 << 20
	MaxNames   = 20 << 20
	// MaxProject of all Features of a project: a twentieth of the volume that the installation has (5 GiB).
	MaxProject = 256 << 20
	// MinFree is the share of a volume, in percent, that has to be free for changes: only calls may use it.
	MinFree = 10
)

const (
	// RowBytes is the size of a call's row in bytes, with its part of the indexes and without its answers, tool results and violations. It is
	// measured with both engines, and rounded up.
	RowBytes = 1536
	// reserve is the share of the room, in percent, that is kept free by dropping the oldest calls of the Feature with the most; minReserve is what
	// a transaction and the logs of the engines need, in bytes, and maxReserve the most, as a part of a small room.
	reserve, minReserve, maxReserve = 5, 32 << 20, 4
	// looks is how often the room is looked at while as much is recorded as is kept free.
	looks = 8
)

// Room is the state of the store before it records a checkpoint.
type Room struct {
	// Feature and Project are the bytes that the ledger stores of each.
	Feature, Project int64
	// Free and Size of the volume in bytes; a Size of 0 is not known.
	Free, Size uint64
}

// Tighter is the one of two rooms that has less before calls have to be dropped.
func (r Room) Tighter(o Room) Room {
	if r.Size == 0 || o.Size > 0 && o.left() < r.left() {
		return o
	}
	return r
}

// left is how much is free above what is kept free.
func (r Room) left() int64 { return int64(r.Free) - r.kept() } //nolint:gosec // no volume has 8 EiB

// kept is how much is to be kept free.
func (r Room) kept() int64 {
	size := int64(r.Size) //nolint:gosec // the same
	return min(max(size/100*reserve, minReserve), size/maxReserve)
}

// Lacking is how many bytes the ledger must drop before it records another call; 0 if there is room.
func (r Room) Lacking() int64 {
	if r.Size == 0 {
		return 0
	}
	return max(-r.left(), 0)
}

// Often is how many bytes the ledger may record before it checks the room again.
func (r Room) Often() int64 { return r.kept() / looks }

// Takes says which parts of a checkpoint the ledger stores, and why it does not store all. Its arguments are the bytes of the names of
// files and of the patch. The ledger never removes older entries for it: no agent can write so much that it erases the record of what it
// did before.
func (r Room) Takes(names, patch int64) (keepNames, keepPatch bool, missing string) {
	switch {
	case r.Size > 0 && (r.Free < r.Size/100*MinFree || r.Lacking() > 0):
		return false, false, "the volume of the ledger is nearly full"
	case r.Project+names > MaxProject:
		return false, false, "the diffs of the project have used up their room in the ledger"
	case r.Feature+names > MaxNames:
		return false, false, "the diffs of the Feature have used up their room in the ledger"
	case r.Project+names+patch > MaxProject:
		return true, false, "the diffs of the project have used up their room in the ledger"
	case r.Feature+names+patch > MaxPatches:
		return true, false, "the diffs of the Feature have used up their room in the ledger"
	}
	return true, true, ""
}
