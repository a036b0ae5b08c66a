// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Directive is something that an agent is told by somebody else than its prompt.
type Directive struct {
	ID string `json:"id"`
	// Source is one of the sources of directives.
	Source string `json:"source"`
	// Type and Priority are those of the API; empty is Functional and Normal.
	Type     string `json:"type,omitempty"`
	Priority string `json:"priority,omitempty"`
	// Description of what must be addressed, the Rationale for it, and the Files that it is about.
	Description string   `json:"description"`
	Rationale   string   `json:"rationale,omitempty"`
	Files       []string `json:"files,omitempty"`
	// Inform: the agent is told, and no word of it is asked for.
	Inform bool `json:"inform,omitempty"`
}

// Sources of directives, types and priorities, in the API's own words.
const (
	SourcePerson = "Person"
	// SourceFeature is another Feature that has delivered.
	SourceFeature = "Feature"

	DirectiveFunctional = "Functional"
	DirectiveCleanup    = "Cleanup"

	PriorityCritical = "Critical"
	PriorityNormal   = "Normal"
	PriorityLow      = "Low"
)

// States of a directive.
const (
	// DirectivePending: the agent has not been told.
	DirectivePending = "Pending"
	// DirectiveActive: it was told, and has not said that the directive is addressed.
	DirectiveActive = "Active"
	// DirectiveAddressed: the agent says so, or a person has taken the directive back.
	DirectiveAddressed = "Addressed"
	// DirectiveEscalated: the agent says that it cannot be done.
	DirectiveEscalated = "Escalated"
	// DirectiveDropped: the agent is not told any more, because it is too old, or was taken back before it was told.
	DirectiveDropped = "Dropped"
)

// Bounds of what is reported of directives.
const (
	// MaxDirectives in a report: as many as can be given at a time, and some that are over.
	MaxDirectives = 192
	// MaxDirectiveID bounds an id, in bytes.
	MaxDirectiveID = 128
)

// DirectiveStatus says how far a directive is.
type DirectiveStatus struct {
	ID     string `json:"id" redact:"key"`
	Source string `json:"source,omitempty"`
	State  string `json:"state"`
	// Age in tasks that were finished since it came.
	Age int `json:"age,omitempty"`
	// Message for people.
	Message string `json:"message,omitempty"`
}
