// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// KnowledgeDir is the folder of the repository with the knowledge of a team.
const KnowledgeDir = "docs/knowledge"

// KnowledgeRules are the values of Knowledge that a source sets.
type KnowledgeRules struct{ Inject *bool }

// Knowledge that a team has written down in docs/knowledge of its repository.
type Knowledge struct {
	// Inject gives it to agents, which then cannot change it.
	Inject bool `json:"inject,omitempty"`
}

func knowledgeRow() Row {
	return flag("knowledge.inject", "Whether agents get what their team has written down in docs/knowledge of the repository. If so, they cannot change that folder.",
		func(r *Rules) **bool { return &r.Knowledge.Inject }, func(e *Effective) *bool { return &e.Knowledge.Inject }, false, true)
}
