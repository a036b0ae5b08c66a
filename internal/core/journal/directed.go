// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import "github.com/tidewaiter/tidewaiter/internal/core/session/directives"

// Directed has the new states of some directives.
type Directed struct {
	Entries []directives.Entry `json:"entries"`
}

// TasksDone is how many tasks are over: done, or aborted.
func (s State) TasksDone() (n int) {
	for _, t := range s.Tasks {
		if t.Over() {
			n++
		}
	}
	return n
}
