// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import "math"

// pressure is a model's window that fills: it is nearly full, or it will be in some turns. A client that was seen to compact
// it by itself may fill it as far as then.
var pressure = detector{name: Pressure, kind: ContextPressure, look: func(l look) sight {
	const (
		// soon is in how many turns it will be full, and half from where on that counts: the first files that an agent reads fill much of it
		// at once.
		soon = 3
		half = 500
		// steady is how far below the limit it stays what it is, in thousandths.
		steady = 50
	)
	n := len(l.t.Fill)
	if n == 0 {
		return sight{}
	}
	fill, first := l.t.Fill[n-1], 10*l.r.ContextPercent
	if l.t.Compacts > 0 {
		first = max(first, min(l.t.Compacts+steady, 10*l.r.ContextUrgent))
	}
	v := sight{lasts: fill >= first-steady, count: fill / 10}
	switch left := l.t.left(soon); {
	case fill >= max(first, 10*l.r.ContextUrgent):
		v.tier = Surgery
	case fill >= first:
		v.tier = Warn
	case fill >= half && left <= soon && l.t.Compacts == 0:
		v.tier = Warn
		return v.says("the context is %d%% full and will be full in %d turns", fill/10, left)
	}
	return v.says("the context is %d%% full", fill/10)
}}

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
