// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import "time"

const (
	// maxTries of one request: seven minutes of a provider that is away.
	maxTries = 12
	// firstPause before another try doubles each time, up to lastPause. maxPause is the longest that a provider may ask for.
	firstPause, lastPause, maxPause = time.Second, time.Minute, 10 * time.Minute
)

// Again says whether to repeat a request after the given number of failures, and after which pause. The provider may have asked for one.
func Again(failures int, asked time.Duration) (pause time.Duration, again bool) {
	if failures >= maxTries || asked > maxPause {
		return 0, false
	}
	return max(asked, min(firstPause<<min(failures-1, 10), lastPause)), true
}
