// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

// Content is what one checkpoint holds of content that was never promoted.
type Content struct {
	// Sequence of the checkpoint.
	Sequence int64
	// Bytes on disk that only this checkpoint has, compared with newer and with kept ones.
	Bytes int64
	// Kept content does not go, whatever it takes.
	Kept bool
}

// Shed names the checkpoints whose content to drop, given all of them from the oldest to the newest. It names none within the budget, and
// otherwise the oldest until half of the budget is free or only kept ones remain. Half, so that this work is rare.
func Shed(contents []Content, budget int64) []int64 {
	var total int64
	for _, c := range contents {
		total += c.Bytes
	}
	if total <= budget {
		return nil
	}
	var gone []int64
	for _, c := range contents {
		if total <= budget/2 {
			break
		}
		if !c.Kept {
			gone = append(gone, c.Sequence)
			total -= c.Bytes
		}
	}
	return gone
}

// Left are the records that are left after a call of Surplus for each of them, given all of them sorted by age.
func Left(records []Checkpoint, keep int) []Checkpoint {
	var left []Checkpoint
	for _, r := range records {
		left = append(left, r)
		gone := map[string]bool{}
		for _, name := range Surplus(left, keep) {
			gone[name] = true
		}
		kept := left[:0]
		for _, l := range left {
			if !gone[l.Name] {
				kept = append(kept, l)
			}
		}
		left = kept
	}
	return left
}
