// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// maxDiffSteps bounds the time that one file's lines are compared for: about 10 ms. Two contents that are not compared
// to the end count with every line that they were not yet seen to share: more than there are, never less.
const maxDiffSteps = 1 << 22

// maxDistance is where maxDiffSteps end at the latest: the steps of each distance add up to half of its square.
const maxDistance = 2900

// maxCompared and maxLines bound the texts whose lines are compared, without what both begin and end with: in bytes, and
// in lines. They bound memory to some 64 MiB and time to some 100 ms; larger texts count with all of their lines.
const maxCompared, maxLines = 16 << 20, 1 << 19

// countLines counts the lines that have to be added and removed to make one text of another, at the least: what
// `git diff --minimal --numstat` counts. A last line without an end differs from one with it, as it does to git.
func countLines(old, now []byte) LineCounts {
	old, now = trimCommon(old, now)
	all := LineCounts{Added: lineCount(now), Removed: lineCount(old)}
	if len(old) == 0 || len(now) == 0 || len(old)+len(now) > maxCompared || all.Added+all.Removed > maxLines {
		return all
	}
	a, b, n := numberBoth(old, now, all.Added+all.Removed)
	inA, inB := make([]bool, n), make([]bool, n)
	for _, id := range a {
		inA[id] = true
	}
	for _, id := range b {
		inB[id] = true
	}
	// A line that only one side has is a change whatever becomes of the others.
	a, removed := shared(a, inB)
	b, added := shared(b, inA)
	more := distance(a, b)
	return LineCounts{Added: added + more.Added, Removed: removed + more.Removed}
}

// trimCommon cuts off what both texts begin and end with, in whole lines.
func trimCommon(a, b []byte) (restA, restB []byte) {
	n := secrets.CommonPrefix(a, b)
	if n < len(a) || n < len(b) {
		n = bytes.LastIndexByte(a[:n], '\n') + 1
	}
	a, b = a[n:], b[n:]
	n = secrets.CommonSuffix(a, b)
	if line := bytes.IndexByte(a[len(a)-n:], '\n'); line >= 0 {
		n -= line + 1
		return a[:len(a)-n], b[:len(b)-n]
	}
	return a, b
}

// lineCount counts lines; the last one may have no end.
func lineCount(text []byte) int64 {
	n := int64(bytes.Count(text, []byte{'\n'}))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// fewLines are compared with each other rather than by a table.
const fewLines = 16

// numberBoth gives each line of both texts a number: equal lines, equal numbers. It says how many different ones there are.
func numberBoth(old, now []byte, lines int64) (a, b []int32, n int) {
	if lines <= fewLines {
		var different [fewLines][]byte
		list := make([]int32, 0, fewLines)
		for _, text := range [...][]byte{old, now} {
			for len(text) > 0 {
				end := lineEnd(text)
				id := 0
				for id < n && !bytes.Equal(different[id], text[:end]) {
					id++
				}
				if id == n {
					different[n] = text[:end]
					n++
				}
				list = append(list, int32(id)) //nolint:gosec // fewer than fewLines
				text = text[end:]
			}
		}
		first := lineCount(old)
		return list[:first:first], list[first:], n
	}
	ids := make(map[string]int32)
	a, b = number(old, ids), number(now, ids)
	return a, b, len(ids)
}

// lineEnd is where the first line of a text ends.
func lineEnd(text []byte) int {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return end + 1
	}
	return len(text)
}

// number gives each line of a text the number that it has in ids, or the next one.
func number(content []byte, ids map[string]int32) []int32 {
	list := make([]int32, 0, lineCount(content))
	// One copy for all lines instead of one for each.
	for text := string(content); len(text) > 0; {
		end := strings.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		id, ok := ids[text[:end]]
		if !ok {
			id = int32(len(ids)) //nolint:gosec // a text of at most maxContent bytes has fewer lines
			ids[text[:end]] = id
		}
		list = append(list, id)
		text = text[end:]
	}
	return list
}

// shared keeps the lines that the other side has, and counts the others.
func shared(lines []int32, other []bool) (kept []int32, dropped int64) {
	kept = lines[:0]
	for _, id := range lines {
		if other[id] {
			kept = append(kept, id)
		} else {
			dropped++
		}
	}
	return kept, dropped
}

// distance counts the lines to be added and removed to make b of a: Myers' greedy algorithm (1986), of which only the
// length of the path is wanted, so that memory grows only with the distance.
func distance(a, b []int32) LineCounts {
	n, m := len(a), len(b)
	all := LineCounts{Added: int64(m), Removed: int64(n)}
	// furthest[zero+k] is how far in a one comes on the diagonal k, where x-y = k. No more are met within the steps.
	zero := min(n+m, maxDistance) + 1
	furthest := make([]int, 2*zero+1)
	steps := 0
	for d := 0; d <= min(n+m, maxDistance); d++ {
		for k := -d; k <= d; k += 2 {
			x := furthest[zero+k-1] + 1
			if k == -d || k != d && furthest[zero+k-1] < furthest[zero+k+1] {
				x = furthest[zero+k+1]
			}
			for x < n && x-k < m && a[x] == b[x-k] {
				x++
				steps++
			}
			furthest[zero+k] = x
			if x >= n && x-k >= m {
				return LineCounts{Added: int64((d + m - n) / 2), Removed: int64((d + n - m) / 2)}
			}
		}
		if steps += d; steps > maxDiffSteps {
			return all
		}
	}
	return all
}
