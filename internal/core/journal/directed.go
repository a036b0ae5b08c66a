// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// Directed has the new states of some directives.
type Directed struct {
	Entries []directives.Entry `json:"entries"`
}

// TasksDone is how many tasks are over: done, or aborted. Tasks for Critical directives do not count: the agent changes only what they are about, and no other
// directive becomes older.
func (s State) TasksDone() (n int) {
	for name, t := range s.Tasks {
		if t.Over() && !protocol.Directs(name) {
			n++
		}
	}
	return n
}

// Holds says whether Low and Cleanup directives of reviewers wait: the policy has polish tasks that are not used up, and the agent works on none.
func (s State) Holds() bool {
	return s.Orders != nil && len(s.polished()) < s.Orders.Policy.Reviewers.PolishTasks && !protocol.Polishes(s.Working())
}
