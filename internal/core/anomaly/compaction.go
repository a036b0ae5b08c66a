// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

// Compaction says when a client sums up the conversation by itself, to make room: at Percent of the window, or when less than Free tokens
// of it are left. The zero value is a client that does not, or an unknown one.
type Compaction struct {
	Percent int
	Free    int64
	// MostFree bounds Free in a small window, in percent of it; 0 does not.
	MostFree int
}

// At is the point of a window at which the client compacts, in tokens. It is 0 if the client does not compact, or if the window is smaller
// than the space that it wants to keep free.
func (c Compaction) At(window int64) int64 {
	free := c.Free
	if c.MostFree > 0 {
		free = min(free, window*int64(c.MostFree)/100)
	}
	return max(0, min(window*int64(c.Percent)/100, window-free))
}
