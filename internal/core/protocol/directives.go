// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Directive is an instruction to a running agent that does not come from its prompt.
type Directive struct {
	ID string `json:"id"`
	// Source is one of the sources of directives.
	Source string `json:"source"`
	// Type and Priority have the API's values; empty means Functional and Normal.
	Type     string `json:"type,omitempty"`
	Priority string `json:"priority,omitempty"`
	// Description says what the agent must address, Rationale why, and Files lists the files concerned.
	Description string   `json:"description"`
	Rationale   string   `json:"rationale,omitempty"`
	Files       []string `json:"files,omitempty"`
	// Inform delivers the directive without asking the agent for a reply.
	Inform bool `json:"inform,omitempty"`
}

// Sources of directives, types and priorities, in the API's own words.
const (
	SourcePerson = "Person"
	// SourceFeature is another Feature that has delivered.
	SourceFeature = "Feature"
	// SourceCodeStyle, SourceDesign and SourceKnowledge are reviewers, and SourceAssessor is the one that looks at the whole. No directive has SourceKnowledge.
	// CustomReviewer makes the other ones.
	SourceCodeStyle = "CodeStyle"
	SourceDesign    = "Design"
	SourceKnowledge = "Knowledge"
	SourceAssessor  = "Assessor"

	DirectiveFunctional = "Functional"
	DirectiveCleanup    = "Cleanup"

	PriorityCritical = "Critical"
	PriorityNormal   = "Normal"
	PriorityLow      = "Low"
)

// States of a directive.
const (
	// DirectivePending: the agent has not received it.
	DirectivePending = "Pending"
	// DirectiveActive: the agent received it, and has not said that it is addressed.
	DirectiveActive = "Active"
	// DirectiveAddressed: the agent says so, or a user has withdrawn the directive.
	DirectiveAddressed = "Addressed"
	// DirectiveEscalated: the agent says that it cannot address it.
	DirectiveEscalated = "Escalated"
	// DirectiveDropped: the watchdog no longer gives it to the agent, because it is too old or was withdrawn before the agent received it.
	DirectiveDropped = "Dropped"
)

// Bounds of the directives in a report.
const (
	// MaxDirectives in a report: as many as can be given at a time, and some that are over.
	MaxDirectives = 192
	// MaxDirectiveID bounds an id, in bytes.
	MaxDirectiveID = 128
	// MaxDirectiveText and MaxDirectiveRationale bound the texts of a reviewer's directive, in characters. MaxDirectiveFiles is the number of its
	// files, and MaxDirectiveFile bounds the name of one, in characters.
	MaxDirectiveText      = 1024
	MaxDirectiveRationale = 512
	MaxDirectiveFiles     = 16
	MaxDirectiveFile      = 512
)

// DirectiveStatus is the state of a directive.
type DirectiveStatus struct {
	ID     string `json:"id" redact:"key"`
	Source string `json:"source,omitempty"`
	State  string `json:"state"`
	// Unread: the watchdog has dropped it before the agent received it.
	Unread bool `json:"unread,omitempty"`
	// Type, Priority, Description, Rationale and Files come from the Directive of a reviewer, until it is over. They are empty for other sources,
	// whose texts users have.
	Type        string   `json:"type,omitempty"`
	Priority    string   `json:"priority,omitempty"`
	Description string   `json:"description,omitempty"`
	Rationale   string   `json:"rationale,omitempty"`
	Files       []string `json:"files,omitempty"`
	// Age is the number of tasks that finished since the directive arrived.
	Age int `json:"age,omitempty"`
	// Message for users.
	Message string `json:"message,omitempty"`
}
