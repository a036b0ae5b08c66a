// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "github.com/tidewaiter/tidewaiter/internal/core/conversation"

// sameFailure is a call that is made again and fails again, though nothing has changed. What a command prints may be another thing next
// time, so that a command may be tried once more than what a tool refuses: people rerun a flaky test two or three times.
var sameFailure = detector{name: SameFailure, kind: AgentLooping, look: func(l look) sight {
	return l.t.most(func(x step) sight {
		if x.Failure == conversation.FailureNone || x.Failure == conversation.FailureFormat || x.Waits && x.Long {
			return sight{}
		}
		first := l.r.Loop
		if x.Failure == conversation.FailureExit {
			first++
		}
		if x.Waits {
			first = patience * l.r.Loop
		}
		n := l.again(x, func(o step) bool {
			return o.Failure == x.Failure && (x.Failure != conversation.FailureExit || o.Result == x.Result)
		})
		return sight{
			tier: l.tier(n, first), tool: x.Tool, count: n, fails: true,
		}.says("the same call of %s has failed %d times in the same way (%s)", x.Tool, n, x.Failure)
	})
}}
