// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "time"

// longestThought is how long a backend may say nothing before its answer begins, in a call whose answer comes as a whole or begins with
// thoughts that are not sent: the time after which the official clients give a request up
// (https://github.com/anthropics/anthropic-sdk-python#timeouts, https://github.com/openai/openai-python#timeouts).
const longestThought = 10 * time.Minute

// Patience is how long a backend may be silent: the time of the timeout profile, and longestThought before its answer begins. A stream of a
// model that does not reason begins at once, so the timeout profile applies to it from the beginning.
func Patience(profile time.Duration, streams, reasons, begun bool) time.Duration {
	if begun || streams && !reasons {
		return profile
	}
	return max(profile, longestThought)
}
