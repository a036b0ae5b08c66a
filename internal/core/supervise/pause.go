// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import "time"

// Pauses between tries of a checkpoint that failed. What makes checkpoints fail is often over soon: a test that moves
// files, a volume that is full while something is built. With the built-in policy (5 s between checkpoints, 3 failures)
// the breaker opens after 25 s at the earliest.
const (
	// leastPause is the first pause where the policy's minInterval is shorter.
	leastPause = time.Second
	// longestPause bounds the pauses, unless minInterval is longer.
	longestPause = time.Minute
	// pauseGrowth is how many times longer than the one before a pause is.
	pauseGrowth = 4
)

// PauseAfter is the pause before the next checkpoint, given the number of consecutive failed ones. minInterval is that of the
// policy.
func PauseAfter(failures int, minInterval time.Duration) time.Duration {
	pause := max(minInterval, leastPause)
	limit := max(longestPause, pause)
	for range failures - 1 {
		if pause *= pauseGrowth; pause >= limit {
			return limit
		}
	}
	return pause
}
