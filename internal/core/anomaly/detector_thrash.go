// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

// thrash is a context that is too small for the task: what was in it is looked at again after each compaction, until there is no room, and nothing
// changes.
var thrash = detector{
	name: Thrash, kind: ContextPressure,
	doc:    "The context is too small for the task: after each compaction it fills with the same again, and no file changes.",
	advice: Finding.makeRoom,
	look: func(l look) sight {
		v := sight{count: l.t.Rounds}
		if l.t.Rounds > 1 && l.s.Changes == l.t.Began {
			v.tier = Warn
		}
		return v.says("the context was compacted %d times and filled with the same again, and no file has changed", l.t.Rounds)
	},
}
