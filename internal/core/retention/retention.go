// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention decides which Checkpoints to keep. Only the objects go: what they recorded stays in the chain of
// the trusted repository.
package retention

import (
	"cmp"
	"slices"
)

// Checkpoint has the facts about a checkpoint that the decision needs.
type Checkpoint struct {
	// Name of the object.
	Name string
	// Sequence counts a Feature's checkpoints from 1.
	Sequence int64
	// Valid and Invalid are its verdict; neither is set where nothing had changed.
	Valid, Invalid bool
	// Promoted is true when its tree, or a part of it, is on the delivery branch.
	Promoted bool
	// Named is true when a status or an open request names it.
	Named bool
}

// Surplus names the records to delete so that keep are left, in the sequence of deletion. Records with the least information (neither
// invalid nor promoted) come first, then the oldest. Records that other objects name always stay, and so do the newest record, the newest
// valid one and the newest promoted one, which other objects will name soon.
func Surplus(records []Checkpoint, keep int) []string {
	surplus := len(records) - max(keep, 1)
	if surplus <= 0 {
		return nil
	}
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b Checkpoint) int { return cmp.Compare(a.Sequence, b.Sequence) })
	held := heldBack(sorted)
	candidates := slices.DeleteFunc(sorted, func(r Checkpoint) bool { return held[r.Name] })
	slices.SortStableFunc(candidates, func(a, b Checkpoint) int { return cmp.Compare(a.weight(), b.weight()) })
	var names []string
	for _, r := range candidates[:min(surplus, len(candidates))] {
		names = append(names, r.Name)
	}
	return names
}

// heldBack are the names of records that never go, given all of them sorted by age.
func heldBack(sorted []Checkpoint) map[string]bool {
	held := map[string]bool{}
	for _, r := range sorted {
		if r.Named {
			held[r.Name] = true
		}
	}
	for _, is := range []func(Checkpoint) bool{
		func(Checkpoint) bool { return true },
		func(r Checkpoint) bool { return r.Valid },
		func(r Checkpoint) bool { return r.Promoted },
	} {
		for _, r := range slices.Backward(sorted) {
			if is(r) {
				held[r.Name] = true
				break
			}
		}
	}
	return held
}

func (r Checkpoint) weight() int {
	if r.Invalid || r.Promoted {
		return 1
	}
	return 0
}
