// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "github.com/tidewaiter/tidewaiter/internal/core/conversation"

// trials are edits that are tried with the same command, which fails each time in the same way, or says more each time: the way does not lead
// anywhere. Somebody who tries things needs some trials, so that it takes twice as many as for a loop.
var trials = detector{name: Trials, kind: PaceEscalated, look: func(l look) sight {
	return l.t.most(func(x step) sight {
		if x.Failure != conversation.FailureExit || x.Waits || x.Bare {
			return sight{}
		}
		next, edited := x, true
		n := l.t.turns(func(o step) counting {
			switch {
			case o.Call != x.Call:
				edited = edited || o.Edits
				return passes
			case o.Failure != x.Failure, !edited, o.Result != next.Result && o.Size >= next.Size && o != x:
				return ends
			}
			next, edited = o, false
			return counts
		})
		return sight{
			tier: l.tier(n, 2*l.r.Loop), tool: x.Tool, count: n,
		}.says("the same call of %s has failed %d times and got no better, whatever was changed", x.Tool, n)
	})
}}
