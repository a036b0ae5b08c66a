// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Proposal is a plan that a model has made of the work.
type Proposal struct {
	Milestones []ProposedMilestone `json:"milestones"`
	// Allowed and Forbidden areas, as patterns. Empty Allowed adds no restriction.
	Allowed   []string `json:"allowedAreas,omitempty"`
	Forbidden []string `json:"forbiddenAreas,omitempty"`
}

// ProposedMilestone is a group of tasks.
type ProposedMilestone struct {
	Name  string         `json:"name" redact:"key"`
	Tasks []ProposedTask `json:"tasks"`
}

// ProposedTask is one run of the agent.
type ProposedTask struct {
	Name         string `json:"name" redact:"key"`
	Instructions string `json:"instructions"`
	// Gates are names of gates that the Feature has.
	Gates []string `json:"gates,omitempty" redact:"key"`
}
