// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "github.com/tidewaiter/tidewaiter/internal/core/conversation"

// badArguments is a tool that is called again and again with arguments that it does not take. They count apart from other failures: the
// tool did nothing, and changed files do not help.
var badArguments = detector{
	name: BadArguments, kind: AgentLooping,
	doc:    "The agent calls a tool again and again with arguments that the tool does not take.",
	advice: always("Read which parameters the tool has, and send exactly those."),
	look: func(l look) sight {
		return l.t.most(func(x step) sight {
			if x.Failure != conversation.FailureFormat {
				return sight{}
			}
			n := l.t.turns(func(o step) counting {
				switch {
				case o.Tool == x.Tool && o.Failure == conversation.FailureFormat:
					return counts
				case o.Tool == x.Tool && o.Failure == conversation.FailureNone:
					return ends
				}
				return passes
			})
			return sight{
				tier: l.tier(n, l.r.Loop), tool: x.Tool, count: n, fails: true,
			}.says("%s was called %d times with arguments that it does not take", x.Tool, n)
		})
	},
}
