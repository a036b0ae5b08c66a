// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// KnowledgeDir is the folder of the repository with the knowledge of a team.
const KnowledgeDir = "docs/knowledge"

// KnowledgeDelivery says what happens to the documents that reviewers have written.
type KnowledgeDelivery string

// Deliveries of knowledge: KnowledgeCommit delivers the documents as the last commit, KnowledgeOff delivers none.
const (
	KnowledgeCommit KnowledgeDelivery = "Commit"
	KnowledgeOff    KnowledgeDelivery = "Off"
)

// KnowledgeRules are the values of Knowledge that a source sets.
type KnowledgeRules struct {
	Inject  *bool
	Deliver KnowledgeDelivery
}

// Knowledge that a team has written down in docs/knowledge of its repository.
type Knowledge struct {
	// Inject gives it to agents, which then cannot change it.
	Inject bool `json:"inject,omitempty"`
	// Deliver says what happens to the documents that reviewers have written. It is empty in policies of versions that had none.
	Deliver KnowledgeDelivery `json:"deliver,omitempty"`
}

func knowledgeRows() []Row {
	return []Row{
		flag("knowledge.inject", "Whether agents get what their team and reviewers have written down in docs/knowledge of the repository. If so, they cannot change that folder, and reviewers write documents.",
			func(r *Rules) **bool { return &r.Knowledge.Inject }, func(e *Effective) *bool { return &e.Knowledge.Inject }, false, true),
		choice("knowledge.deliver", "What happens to the documents that reviewers have written for docs/knowledge. Commit delivers them as the last commit of the work. Off delivers none.",
			func(r *Rules) *KnowledgeDelivery { return &r.Knowledge.Deliver }, func(e *Effective) *KnowledgeDelivery { return &e.Knowledge.Deliver },
			KnowledgeCommit, KnowledgeCommit, KnowledgeOff),
	}
}
