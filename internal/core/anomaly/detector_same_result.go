// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "github.com/tidewaiter/tidewaiter/internal/core/conversation"

// sameResult is a call that succeeds again with the same result, without other news and without a change. It takes more than a failure:
// a look at the state of things is cheap, and agents repeat it. A call that waits for something may come
// much more often, and one that waits for long at any time, unless it has got what it waits for: that takes twice as many.
var sameResult = detector{
	name: SameResult, kind: AgentLooping,
	doc:    "The same call succeeds again with the same result, and the agent learns nothing else.",
	advice: always("You have this result: use it, or find out something else."),
	look: func(l look) sight {
		return l.t.most(func(x step) sight {
			if x.Failure != conversation.FailureNone || x.Waits && x.Long && !x.Over {
				return sight{}
			}
			n, slept, _ := l.again(x, false, x.Over, func(o step) bool {
				return o.Failure == conversation.FailureNone && o.Result == x.Result
			})
			first := l.r.Loop + 2
			switch {
			case x.Over && slept:
				first *= 2
			case x.Polls || x.Waits:
				first = patience * l.r.Loop
			}
			// Whatever else was learnt since gives the repetition a sense.
			over := false
			learnt, _ := l.t.count(x.Over, func(o step) counting {
				switch {
				case over || o.New && o.Call != x.Call:
					return ends
				case o.Call != x.Call || o.Waits != x.Waits && !x.Over:
					return passes
				}
				over = o.New
				return counts
			})
			tier := l.tier(min(n, learnt), first)
			if x.Polls || x.Waits { // what it waits for may yet come, and meanwhile it may do something else
				tier = min(l.tier(n, first), Warn)
			}
			return sight{
				tier: tier, tool: x.Tool, count: n, succeeds: true,
			}.says("the same call of %s has given the same result %d times", x.Tool, n)
		})
	},
}
