// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

// sameWords is a model that says the same in each turn and brings nothing: it calls no tools, or such as bring nothing.
// A turn without tools would be the same again.
var sameWords = detector{
	name: SameWords, kind: AgentLooping,
	doc:    "The model says the same in each turn, and brings nothing.",
	advice: always("Take the next step with a tool, or say what keeps you from it."),
	look: func(l look) sight {
		return sight{
			tier: min(l.tier(l.t.Same, l.r.Loop), Surgery), count: l.t.Same,
		}.says("%d turns have said the same and brought nothing", l.t.Same)
	},
}
