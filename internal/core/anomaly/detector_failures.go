// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

// onlyFailures are turns in a row in which nothing succeeds, whatever is called, and in which nothing changes: the way does not lead anywhere. Each
// failure may tell something, so that it says less than what the others find.
var onlyFailures = detector{
	name: Failures, kind: AgentStalled, off: true,
	doc:    "All calls fail for some turns in a row, whatever the agent calls, and nothing changes.",
	advice: always("Find out what these failures have in common before you try another way, or say what blocks you."),
	look: func(l look) sight {
		return sight{
			tier: l.tier(l.t.Fails, l.r.Loop+2), count: l.t.Fails,
		}.says("nothing has succeeded in %d turns in a row", l.t.Fails)
	},
}
