// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"cmp"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// Directive tells the agent what a user wants it to do or to know.
type Directive struct {
	Type string `json:"type"`
	// DirectiveID, and Kind and Priority of it: functional or cleanup, critical, normal or low.
	DirectiveID string   `json:"directive_id"`
	Kind        string   `json:"kind,omitempty"`
	Priority    string   `json:"priority,omitempty"`
	Description string   `json:"description"`
	Rationale   string   `json:"rationale,omitempty"`
	Files       []string `json:"files,omitempty"`
}

// Directed reports a directive. A directive that only informs has the type information.
func Directed(d directives.Directive) Directive {
	if d.Inform {
		return Directive{Type: "information", DirectiveID: d.ID, Description: d.Description}
	}
	return Directive{
		Type: "directive", DirectiveID: d.ID, Kind: strings.ToLower(cmp.Or(d.Type, protocol.DirectiveFunctional)), Priority: strings.ToLower(cmp.Or(d.Priority, protocol.PriorityNormal)),
		Description: d.Description, Rationale: d.Rationale, Files: d.ShownFiles(),
	}
}
