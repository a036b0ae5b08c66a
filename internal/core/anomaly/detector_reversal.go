// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "fmt"

// reversal is an edit that is taken back, made again and taken back again; or, where no call says what it edits, a workspace that goes back
// and forth between trees. To try something and to take it back is work, so that once or twice say nothing.
var reversal = detector{
	name: Reversal, kind: AgentLooping,
	doc:    "The agent takes an edit back, makes it again and takes it back again, or the workspace goes back and forth between states.",
	advice: always("Find out which of the two versions is right before you edit again."),
	look: func(l look) sight {
		n := l.t.reversals()
		if tier := l.tier(n, l.r.Loop); tier > 0 {
			return sight{tier: tier, count: n, evidence: fmt.Sprintf("an edit was taken back and made again %d times", n)}
		}
		// Changing between branches and stashing bring back trees, too.
		if n := l.s.Returns; l.t.main() && n > l.r.Loop {
			return sight{tier: l.tier(n, l.r.Loop+1), count: n, evidence: fmt.Sprintf("the workspace went back to an earlier state %d times in a row", n)}
		}
		return sight{}
	},
}

// reversals is how many edits in a row of a file that was edited in the last turns have brought back what was there a short time before, the newest
// included.
func (t *Thread) reversals() (most int) {
	const fresh = 3
	done := make(map[sum]bool, 4)
	for i := len(t.Edits) - 1; i >= 0 && t.Turn-t.Edits[i].Turn <= fresh; i-- {
		if path := t.Edits[i].Path; !done[path] {
			done[path] = true
			most = max(most, t.returns(path, i))
		}
	}
	return most
}

// returns of one file, by its edits up to the one at last.
func (t *Thread) returns(path sum, last int) (n int) {
	for i := last; i >= 0; i-- {
		if t.Edits[i].Path != path {
			continue
		}
		if !t.returned(i) {
			break
		}
		n++
	}
	return n
}

// returned says that an edit brings back what an earlier one of the file has taken out, or makes one again that was made before, so that it was taken
// back meanwhile. If the calls write whole files, another content was there between.
func (t *Thread) returned(at int) bool {
	const near = 12 // turns
	e, between := t.Edits[at], false
	for i := at - 1; i >= 0 && e.Turn-t.Edits[i].Turn <= near; i-- {
		o := t.Edits[i]
		switch {
		case o.Path != e.Path:
		case e.From == 0 || o.From == 0:
			if e.From == o.From && e.To == o.To && between {
				return true
			}
			between = true
		case o.From == e.To && o.To != e.To, o.Call == e.Call:
			return true
		}
	}
	return false
}
