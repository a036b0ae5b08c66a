// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

// stall is turns that bring nothing: no file changes, and no call gives a result that was not known. Turns that wait do not count. A result now and
// then that is new does not end it, as long as no file changes.
var stall = detector{name: Stall, kind: AgentStalled, look: func(l look) sight {
	n, of := l.t.Idle, l.t.Idle
	if window := l.r.Stall * 3 / 2; n < l.r.Stall && n > 0 && window <= maxTurns {
		n, of = l.t.idle(window)
	}
	v := sight{tier: min(l.tier(n, l.r.Stall), Warn), count: n, worked: l.s.Succeeded > 0}
	if n < of {
		return v.says("%d of the last %d turns have brought no result that was not known, and no file has changed", n, of)
	}
	return v.says("%d turns have changed no file and brought no result that was not known", n)
}}

// idle are the turns that bring nothing, not even another result of the same call, of the newest ones in which no file changed, and how many these are.
func (t *Thread) idle(window int) (n, of int) {
	for i := len(t.Turns) - 1; i >= 0 && of < window; i-- {
		x := t.Turns[i]
		if x.Changes != t.Own {
			break
		}
		if of++; !x.New && !x.Waits && !x.Varies {
			n++
		}
	}
	return n, of
}
