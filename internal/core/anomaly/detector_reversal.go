// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "fmt"

// reversal is an edit that is taken back, made again and taken back again; or, where no call says what it edits, a workspace that goes back
// and forth between trees. To try something and to take it back is work, so that once or twice say nothing.
var reversal = detector{name: Reversal, kind: AgentLooping, look: func(l look) sight {
	n := l.t.reversals()
	if tier := l.tier(n, l.r.Loop); tier > 0 {
		return sight{tier: tier, count: n, evidence: fmt.Sprintf("an edit was taken back and made again %d times", n)}
	}
	// Changing between branches and stashing bring back trees, too.
	if n := l.s.Returns; l.t.main() && n > l.r.Loop {
		return sight{tier: l.tier(n, l.r.Loop+1), count: n, evidence: fmt.Sprintf("the workspace went back to an earlier state %d times in a row", n)}
	}
	return sight{}
}}

// reversals is how often in a row the newest edit, made in the last turns, was the reverse of the one before of the same text, made a short
// time before.
func (t *Thread) reversals() (n int) {
	const fresh, near = 3, 8
	last := len(t.Edits) - 1
	if last < 0 || t.Turn-t.Edits[last].Turn > fresh {
		return 0
	}
	was := t.Edits[last]
	for i := last - 1; i >= 0; i-- {
		e := t.Edits[i]
		if e.Pair != was.Pair {
			continue
		}
		if e.Back == was.Back || was.Turn-e.Turn > near {
			break
		}
		n, was = n+1, e
	}
	return n
}
