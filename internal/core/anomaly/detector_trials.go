// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "github.com/tidewaiter/tidewaiter/internal/core/conversation"

// trials are edits that are tried with the same command, which fails each time and names no less than before: the way does not lead
// anywhere. Somebody who tries things needs some trials, so that it takes twice as many as for a loop. A test or a compiler that gets further names
// other things. Names from before do not count as progress.
var trials = detector{
	name: Trials, kind: AgentStalled, off: true,
	doc:    "The agent tries edits with the same command, which fails each time and names no less than before.",
	advice: always("Find the cause of the failure before you change anything else, or say what blocks you."),
	look: func(l look) sight {
		return l.t.most(func(x step) sight {
			fails := x.Failure == conversation.FailureExit || x.Failure == conversation.FailureTool && x.Program != ""
			if !fails || x.Waits && !x.Hard || x.Bare {
				return sight{}
			}
			edited := true
			n, slept := l.t.count(x.Hard, func(o step) counting {
				switch {
				case o.Call != x.Call && !o.like(x) || o.Edits:
					edited = edited || o.Edits
					return passes
				case o.Failure != x.Failure, !edited:
					return ends
				}
				edited = false
				if better(x, o) {
					return passes
				}
				return counts
			})
			first := 2 * l.r.Loop
			if slept {
				first *= 2
			}
			return sight{
				tier: l.tier(n, first), tool: x.Tool, count: n,
			}.says("the same call of %s has failed %d times and got no better, whatever was changed", x.Tool, n)
		})
	},
}
