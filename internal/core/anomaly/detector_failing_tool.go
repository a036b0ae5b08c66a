// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "github.com/tidewaiter/tidewaiter/internal/core/conversation"

// failingTool is a tool that fails in the same way whatever it is called with. Somebody who looks around meets some failures, so it takes more
// of them than for the same call. A command that ends with a code other than 0 has not failed as a tool, unless all print the same.
var failingTool = detector{
	name: FailingTool, kind: AgentLooping,
	doc:    "A tool fails in the same way, whatever its arguments are.",
	advice: Finding.opposite,
	look: func(l look) sight {
		return l.t.most(func(x step) sight {
			exit := x.Failure == conversation.FailureExit
			if x.Failure == conversation.FailureNone || x.Failure == conversation.FailureFormat || x.Waits || exit && x.Bare {
				return sight{}
			}
			n := l.t.turns(func(o step) counting {
				switch {
				case o.Tool != x.Tool || o.Waits:
					if o.Wrote && x.Failure != conversation.FailureDenied && (x.Path == 0 || o.Path == 0 || o.Path == x.Path) {
						return ends
					}
					return passes
				case o.Failure != x.Failure, exit && !alike(x, o):
					return ends
				}
				return counts
			})
			return sight{
				tier: l.tier(n, l.r.Loop+2), tool: x.Tool, count: n, fails: true,
			}.says("%s has failed %d times in a row in the same way (%s)", x.Tool, n, x.Failure)
		})
	},
}
