// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"math"
	"slices"
)

// pressure is a model's window that fills, and nobody makes room: it is nearly full, or it will be in some turns. A client that compacts the
// conversation by itself may fill it up to where it does that, or was seen to do it. Beyond that it has some answers to go, in which it asks for the
// summary. What it makes free must be worth it.
var pressure = detector{
	name: Pressure, kind: ContextPressure,
	doc:    "The window of the model is nearly full, or will be in some turns, and nobody makes room.",
	advice: Finding.makeRoom,
	look: func(l look) sight {
		const (
			// soon is in how many turns it will be full, and half from where on that counts: the first files that an agent reads fill much of it
			// at once.
			soon = 3
			half = 500
			// steady is how far below the limit it stays what it is, in thousandths.
			steady = 50
			// beyond is how many answers in a row show that the client does not compact where it should: one brings the context there, the next may be
			// the summary, and the third is another request with all of it.
			beyond = 3
			// crammed is a window after a compaction that has made next to no room.
			crammed = 800
		)
		n := len(l.t.Fill)
		if n == 0 {
			return sight{}
		}
		point := 0
		if l.t.Window > 0 {
			point = int(l.r.Compaction.At(l.t.Window) * 1000 / l.t.Window)
		}
		fill, first := l.t.Fill[n-1], max(10*l.r.ContextPercent, point)
		if l.t.Compacts > 0 {
			first = max(first, min(l.t.Compacts+steady, 10*l.r.ContextUrgent))
		}
		v := sight{lasts: fill >= first-steady, count: fill / 10}
		if point > 0 && l.t.Left >= max(crammed, 10*l.r.ContextPercent) {
			v.tier = Warn
			return v.says("the context was compacted and is %d%% full all the same", fill/10)
		}
		full := fill
		if point > 0 {
			full = slices.Min(l.t.Fill[max(n-beyond, 0):])
			if n < beyond {
				full = 0
			}
		}
		switch left := l.t.left(soon); {
		case full >= max(first, 10*l.r.ContextUrgent):
			v.tier = Surgery
		case full >= first:
			v.tier = Warn
		case fill >= half && left <= soon && l.t.Compacts == 0 && point == 0:
			v.tier = Warn
			return v.says("the context is %d%% full and will be full in %d turns", fill/10, left)
		}
		if point > 0 {
			return v.says("the context is %d%% full, and the client has not compacted it at %d%%", fill/10, point/10)
		}
		return v.says("the context is %d%% full", fill/10)
	},
}

// left is in how many turns the window will be full, if each brings as much as the least of the last ones.
func (t *Thread) left(turns int) int {
	n := len(t.Fill)
	if n <= turns {
		return math.MaxInt
	}
	least := math.MaxInt
	for i := n - turns; i < n; i++ {
		least = min(least, t.Fill[i]-t.Fill[i-1])
	}
	if least <= 0 {
		return math.MaxInt
	}
	return max(1000-t.Fill[n-1], 0) / least
}
