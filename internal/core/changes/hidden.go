// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// inSecret stands for a line that is nothing but the rest of a secret.
const inSecret = "[redacted]"

// hidden are the lines of a file in which secrets are. A difference shows some lines of it: a secret whose beginning is not among
// them could not be found there.
type hidden struct {
	// lines that have something else next to a secret, as they are shown, by their number from 1.
	lines map[int]string
	// whole are the first and the last of lines that a secret fills, sorted.
	whole [][2]int
}

// hiddenIn a file.
func hiddenIn(text []byte, places []secrets.Place) hidden {
	h := hidden{lines: map[int]string{}}
	secrets.Sort(places)
	// A secret reaches to where covered is.
	offset, number, next, covered := 0, 0, 0, 0
	for line := range bytes.Lines(text) {
		number++
		from, to := offset, offset+len(line)
		offset = to
		switch {
		case covered >= to:
			h.fill(number)
			continue
		case covered <= from && (next == len(places) || places[next].From >= to):
			continue
		}
		at := max(from, min(covered, to))
		var shown []byte
		if at > from {
			shown = append(shown, inSecret...)
		}
		for ; next < len(places) && places[next].From < to; next++ {
			p := places[next]
			if p.From >= at {
				shown = append(shown, text[at:p.From]...)
				if p.Rule != "" {
					shown = append(shown, secrets.Mark(p.Rule)...)
				}
			}
			at, covered = max(at, min(p.To, to)), max(covered, p.To)
		}
		h.lines[number] = strings.TrimSuffix(string(append(shown, text[at:to]...)), "\n")
	}
	return h
}

// fill a line with a secret.
func (h *hidden) fill(line int) {
	if last := len(h.whole) - 1; last >= 0 && h.whole[last][1] == line-1 {
		h.whole[last][1] = line
		return
	}
	h.whole = append(h.whole, [2]int{line, line})
}

// line as it is shown; false where it is shown as it is.
func (h *hidden) line(number int) (string, bool) {
	if shown, is := h.lines[number]; is {
		return shown, true
	}
	_, is := slices.BinarySearchFunc(h.whole, number, func(lines [2]int, n int) int {
		if lines[0] <= n && n <= lines[1] {
			return 0
		}
		return cmp.Compare(lines[0], n)
	})
	return inSecret, is
}
