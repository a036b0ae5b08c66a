// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/tidewaiter/tidewaiter/internal/core/policy"

// Plan bounds the work, by patterns. Empty Allowed allows everything; Absent Files, or Files without patterns, add no restriction.
type Plan struct {
	Allowed []string `json:"allowed,omitempty"`
	// Proposed are the allowed areas of a plan that a model has made: a path must be in Allowed and in these. Empty adds no restriction.
	Proposed  []string  `json:"proposed,omitempty"`
	Forbidden []string  `json:"forbidden,omitempty"`
	Files     *FilePlan `json:"files,omitempty"`
}

// Areas are the lists of allowed areas that are not empty. A path must match a pattern of each.
func (p Plan) Areas() [][]string {
	var lists [][]string
	for _, list := range [][]string{p.Allowed, p.Proposed} {
		if len(list) > 0 {
			lists = append(lists, list)
		}
	}
	return lists
}

// FilePlan is the whole set of planned files, as patterns.
type FilePlan struct {
	Create []string `json:"create,omitempty"`
	Modify []string `json:"modify,omitempty"`
	Delete []string `json:"delete,omitempty"`
}

// Violation is one rule broken by one path.
type Violation struct {
	// Rule is the rule's id.
	Rule string `json:"rule"`
	// Path that breaks it; empty if it is the whole tree. Raw bytes: escape it before it is shown.
	Path string `json:"path,omitempty"`
	// Severity of it.
	Severity policy.Severity `json:"severity"`
	// Message says what is wrong; hostile names in it are escaped.
	Message string `json:"message"`
	// Suggestion says how to fix it.
	Suggestion string `json:"suggestion,omitempty"`
}

// Verdict on a tree.
type Verdict string

// Verdicts. The check gives the first two; a checkpoint is Skipped when its tree equals the previous one's.
const (
	Valid   Verdict = "Valid"
	Invalid Verdict = "Invalid"
	Skipped Verdict = "Skipped"
)
