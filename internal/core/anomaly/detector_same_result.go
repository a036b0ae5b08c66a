// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "github.com/tidewaiter/tidewaiter/internal/core/conversation"

// sameResult is a call that succeeds again with the same result, while nothing else is learnt and nothing changes. It takes more than a failure:
// a look at the state of things is cheap, and agents repeat it. A call that waits for something may come
// much more often, and one that waits for long at any time.
var sameResult = detector{name: SameResult, kind: AgentLooping, look: func(l look) sight {
	return l.t.most(func(x step) sight {
		if x.Failure != conversation.FailureNone || x.Waits && x.Long {
			return sight{}
		}
		first := l.r.Loop + 2
		if x.Polls || x.Waits {
			first = patience * l.r.Loop
		}
		over := false
		n := l.again(x, func(o step) bool {
			return o.Failure == conversation.FailureNone && o.Result == x.Result
		})
		// Whatever else was learnt since gives the repetition a sense.
		learnt := l.t.turns(func(o step) counting {
			switch {
			case over || o.New && o.Call != x.Call:
				return ends
			case o.Call != x.Call || o.Waits != x.Waits:
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
			tier: tier, tool: x.Tool, count: n,
		}.says("the same call of %s has given the same result %d times", x.Tool, n)
	})
}}
