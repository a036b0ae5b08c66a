// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

// refusals are checkpoints in a row that break the policy, though files have changed from one to the next: what the agent does about them does not
// help. The agent learns of each violation when it is found.
var refusals = detector{
	name: Refusals, kind: AgentStalled, off: true,
	doc:    "Checkpoints in a row break the policy, though files change from one to the next.",
	advice: always("Take back what the policy refuses and do the task within it, or say what blocks you."),
	look: func(l look) sight {
		if !l.t.main() {
			return sight{}
		}
		return sight{
			tier: l.tier(l.s.Refused, 2*l.r.Loop), count: l.s.Refused,
		}.says("%d checkpoints in a row were not valid", l.s.Refused)
	},
}
