// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "github.com/tidewaiter/tidewaiter/internal/core/conversation"

// sameFailure is a call that is made again and fails again, though nothing has changed, or a command that is made again in another form and fails in the
// same way. What a command prints may be another thing next time, so that a command may be tried once more than what a tool refuses: people
// rerun a flaky test two or three times. One that is slept upon takes twice as many where no time heals it, and many more where it may;
// three times as many where the call waits itself until its time is over, and says the same each time.
var sameFailure = detector{
	name: SameFailure, kind: AgentLooping,
	doc:    "The same call, or one that differs little, fails again in the same way, though nothing has changed.",
	advice: Finding.opposite,
	look: func(l look) sight {
		return l.t.most(func(x step) sight {
			if x.Failure == conversation.FailureNone || x.Failure == conversation.FailureFormat {
				return sight{}
			}
			like := func(o step) bool {
				return o.Failure == x.Failure && (x.Failure != conversation.FailureExit || alike(x, o)) && (!x.Until || o.Result == x.Result) && (o.Call == x.Call || !o.Bare)
			}
			n, slept, _ := l.again(x, false, x.Hard, like)
			if s := l.fails(x, n, slept, 0); s.tier > 0 {
				return s.says("the same call of %s has failed %d times in the same way (%s)", x.Tool, n, x.Failure)
			}
			n, slept, varied := l.again(x, true, x.Hard, like)
			if !varied {
				return sight{}
			}
			return l.fails(x, n, slept, 1).says("calls of %s that differ little have failed %d times in the same way (%s)", x.Tool, n, x.Failure)
		})
	},
}

// fails is the sight of a call that has failed the given number of times; more is how many more are looked at than for the same call.
func (l look) fails(x step, n int, slept bool, more int) sight {
	first := l.r.Loop + more
	if x.Failure == conversation.FailureExit {
		first++
	}
	switch {
	case x.Hard && slept:
		first *= 2
	case x.Until:
		first *= 3
	case x.Waits:
		first = patience * l.r.Loop
	}
	return sight{tier: l.tier(n, first), tool: x.Tool, count: n, fails: true}
}
