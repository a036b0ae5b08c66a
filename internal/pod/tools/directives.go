// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// Directives are users' messages to a working agent.
type Directives interface {
	// Open are the directives that the agent must address.
	Open() []directives.Directive
	// Settle records the outcome of one. The error is for the agent.
	Settle(w directives.Word) error
}

// Directive as an agent sees it.
type Directive struct {
	ID          string   `json:"id"`
	Type        string   `json:"type,omitempty"`
	Priority    string   `json:"priority,omitempty"`
	Description string   `json:"description"`
	Rationale   string   `json:"rationale,omitempty"`
	Files       []string `json:"files,omitempty"`
}

// open is what the agent must address. Information comes elsewhere: answers are in the context.
func open(d Directives) (list []Directive) {
	for _, x := range d.Open() {
		if !x.Inform {
			list = append(list, Directive{ID: x.ID, Type: x.Type, Priority: x.Priority, Description: x.Description, Rationale: x.Rationale, Files: x.ShownFiles()})
		}
	}
	return list
}

type settleInput struct {
	DirectiveID string `json:"directive_id" jsonschema:"the id of the directive"`
	Outcome     string `json:"outcome" jsonschema:"ADDRESSED, ALREADY HANDLED or CANNOT"`
	Reason      string `json:"reason" jsonschema:"how, where or why, in one sentence"`
}

type settleOutput struct {
	Message string `json:"message"`
}

// registerDirectives registers the tool by which an agent reports the outcome of a directive.
func registerDirectives(s *mcp.Server, d Directives) {
	mcp.AddTool(s, &mcp.Tool{Name: "directive_settle", Annotations: &mcp.ToolAnnotations{IdempotentHint: true},
		Description: "Say how you settled a directive: ADDRESSED, ALREADY HANDLED, or CANNOT, which asks a user to decide."},
		func(_ context.Context, _ *mcp.CallToolRequest, in settleInput) (*mcp.CallToolResult, settleOutput, error) {
			if !slices.Contains(directives.Outcomes(), directives.Outcome(in.Outcome)) {
				return nil, settleOutput{}, fmt.Errorf("outcome must be one of %q", directives.Outcomes())
			}
			if err := d.Settle(directives.NewWord(in.DirectiveID, directives.Outcome(in.Outcome), in.Reason)); err != nil {
				return nil, settleOutput{}, err
			}
			return nil, settleOutput{Message: "The supervisor notes it, and people can see it."}, nil
		})
}
