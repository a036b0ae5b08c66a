// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TestSpentRungs: what was tried before the agent was started anew is not tried on the next one, whichever way it goes wrong. Without that, an
// agent that never gets on would be started again for ever.
func TestSpentRungs(t *testing.T) {
	silent := func(l *lonely) {
		l.now = l.now.Add(time.Minute)
		l.seen.Pulse(anomaly.Pulse{Processes: 3}, l.now)
	}
	for name, tc := range map[string]struct {
		// lives through a short time, in which it does something wrong.
		lives func(l *lonely)
		want  []Rung
	}{
		"silent, before it has asked a model": {
			func(l *lonely) { silent(l); l.check() },
			[]Rung{Restart, Block},
		},
		"silent, after it has asked a model": {
			func(l *lonely) {
				if len(l.turns) == 0 {
					l.turn(1)
				}
				silent(l)
				l.decide(TurnContext{Now: l.now, Clock: true})
			},
			[]Rung{Restart, Block},
		},
		"its files go back and forth, and it asks no model": {
			func(l *lonely) {
				l.seen.Work(anomaly.Work{Tree: fmt.Sprint("tree", l.now.Minute()%2), Changed: true, Verdict: "Valid"}, l.now)
				l.now = l.now.Add(time.Minute)
				l.check()
			},
			[]Rung{Rollback, Restart, Block},
		},
		"its model calls the same in vain": {
			func(l *lonely) {
				n := l.turns[1] // something else is learnt each time, so that it is no stall
				l.turn(1, call("Deploy", `{"to":"web"}`, "cannot", conversation.FailureTool), call("Read", fmt.Sprint(n), fmt.Sprint(n), conversation.FailureNone))
			},
			[]Rung{Hold, Rollback, Restart, Hold, Block},
		},
	} {
		l := newLonely(t, Block, Reach{Alone: true})
		var halts []Rung
		for range 400 {
			l.steps = nil
			tc.lives(l)
			for _, x := range l.steps {
				if x.Halts() {
					halts = append(halts, x.Rung)
				}
				if x.Rung == Restart && !x.Over {
					l.state, l.seen, l.turns = l.state.Anew(l.seen.Episodes), anomaly.State{}, map[int]int{}
				}
			}
		}
		if n := slices.Index(halts, Block); n < 0 || !slices.Equal(halts[:n+1], tc.want) {
			t.Errorf("%s: %v, want %v", name, halts, tc.want)
		}
	}
}
