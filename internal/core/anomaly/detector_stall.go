// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

// stall is turns that bring nothing: no file changes, and no call gives a result that was not known. Turns that wait do not count. A result now and
// then that is new does not end it, as long as no file changes. Neither do files that are rewritten again and again, while nothing is learnt or run.
var stall = detector{
	name: Stall, kind: AgentStalled,
	doc:    "Turns bring nothing: no file changes, and no call gives a new result.",
	advice: always(reassess),
	look: func(l look) sight {
		n, of := l.t.Idle, l.t.Idle
		if window := l.r.Stall * 3 / 2; n < l.r.Stall && n > 0 && window <= maxTurns {
			n, of = l.t.idle(window)
		}
		v := sight{tier: min(l.tier(n, l.r.Stall), Warn), count: n, worked: l.s.Succeeded > 0}
		if again := l.t.rewrites(); v.tier == 0 && again >= 2*l.r.Loop {
			v.tier, v.count = Warn, again
			return v.says("the agent wrote the same files again in %d turns, and did nothing else", again)
		}
		if n < of {
			return v.says("%d of the last %d turns have brought no result that was not known, and no file has changed", n, of)
		}
		return v.says("%d turns have changed no file and brought no result that was not known", n)
	},
}

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

// rewrites counts the consecutive turns that rewrote one file, or two: about as large as before, mostly with other lines, without another
// change, run or news. A file that grows, or that is edited by writing it whole, is work.
func (t *Thread) rewrites() int {
	const files = 2
	newest, after := make(map[sum]step, files), make(map[sum]step, files)
	n, _ := t.count(true, func(o step) counting {
		last, known := newest[o.Path]
		switch {
		case o.Turn < t.Spoken:
			return ends
		case o.Whole == 0 && !o.May && !o.New:
			return passes
		case o.Whole == 0 || len(o.Lines) == 0, !known && len(newest) == files, known && (4*o.Whole < 3*last.Whole || 3*o.Whole > 4*last.Whole):
			return ends
		case !known:
			newest[o.Path] = o
		case 2*common(o.Lines, after[o.Path].Lines) > min(len(o.Lines), len(after[o.Path].Lines)):
			return ends
		}
		after[o.Path] = o
		return counts
	})
	return n
}
