// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"slices"
)

// oscillation is a cycle of turns, such as A, B, A, B, while nothing changes.
var oscillation = detector{
	name: Oscillation, kind: AgentLooping,
	doc:    "Turns go round in a circle, and nothing changes.",
	advice: always("Decide by what the results say, and take another next step."),
	look: func(l look) sight {
		for cycle := 2; cycle <= 4; cycle++ {
			n := l.t.cycled(cycle)
			// Four turns of two if something fails. Otherwise one more, because an agent may look at two things twice; and two and a half rounds of
			// longer cycles.
			first, failed := cycle*5/2+1, l.t.failed(2*cycle)
			if cycle == 2 {
				first = 5
				if failed {
					first = 4
				}
			}
			if n >= first {
				return sight{
					tier: l.tier(n, max(first, l.r.Loop)), count: n, succeeds: !failed,
					evidence: fmt.Sprintf("the last %d turns repeat the same %d", n, cycle),
				}
			}
		}
		return sight{}
	},
}

// cycled is how many of the newest turns are the same as the one the given number of turns before, themselves included; 0 where they wait,
// or are all the same, or where a file changed.
func (t *Thread) cycled(cycle int) int {
	last := len(t.Turns) - 1
	if last < cycle || t.Turns[last].Said == t.Turns[last-1].Said {
		return 0
	}
	n := 0
	for i := last; i-cycle >= 0; i-- {
		a, b := t.Turns[i], t.Turns[i-cycle]
		if a.Said != b.Said || a.Said == 0 || a.Changes != b.Changes || a.Waits || b.Waits {
			break
		}
		n++
	}
	calls := t.Turns[last].Calls
	if n == 0 || calls != 0 && !slices.ContainsFunc(t.Turns[last-cycle:last], func(x turn) bool { return x.Calls != calls }) {
		return 0 // a call whose result differs from time to time is not a cycle
	}
	return n + cycle
}

// failed says whether one of the newest turns had a call that failed.
func (t *Thread) failed(turns int) bool {
	for _, x := range t.Turns[max(0, len(t.Turns)-turns):] {
		if x.Fails {
			return true
		}
	}
	return false
}
