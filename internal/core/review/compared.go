// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// maxCompared bounds the sizes of the changed files that are compared line by line, and maxPart what counts of each, in bytes. Their patch fits into
	// protocol.MaxPatch.
	maxCompared = 768 << 10
	maxPart     = 256 << 10
	// changeHead is about how many bytes a patch says of a file before its lines.
	changeHead = 512
)

// Compared are the paths of the changes that a reviewer can see line by line. One half of the room is for the smallest ones, and the other for any: an
// agent hides no file behind large ones, or behind others that come before it. Shuffle decides which ones these are, as rand.Shuffle does. A finding
// cannot name a longer path than MaxPath.
func Compared(all []judge.Change, shuffle func(n int, swap func(i, j int))) (paths []string) {
	order := slices.DeleteFunc(slices.Clone(all), func(c judge.Change) bool { return len(c.Path) > MaxPath })
	plain.SortStable(order, func(a, b *judge.Change) int { return cmp.Compare(compares(*a), compares(*b)) })
	small, room := 0, int64(maxCompared)
	for _, c := range order {
		if room -= compares(c); room < maxCompared/2 {
			break
		}
		small++
	}
	others := order[small:]
	shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	room = maxCompared
	for _, c := range order {
		if room -= compares(c); room < 0 {
			break
		}
		paths = append(paths, c.Path)
	}
	return paths
}

// compares is about how many bytes the comparison of a file has.
func compares(c judge.Change) int64 { return min(c.Old.Size+c.New.Size+changeHead, maxPart) }
