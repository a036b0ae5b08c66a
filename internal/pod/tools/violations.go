// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/notice"
)

type understoodInput struct {
	Rule    string `json:"rule" jsonschema:"the rule that the supervisor asked you to acknowledge"`
	Instead string `json:"instead" jsonschema:"what you do instead, in one sentence"`
}

type understoodOutput struct {
	Message string `json:"message"`
}

// registerUnderstood makes the tool known by which an agent acknowledges a broken rule.
func registerUnderstood(s *mcp.Server, understood func(said ...notice.Understood) error) {
	mcp.AddTool(s, &mcp.Tool{Name: "violation_acknowledge", Annotations: &mcp.ToolAnnotations{IdempotentHint: true},
		Description: "Say that you have understood that you broke a rule of severity critical, and what you do instead. Call it for each rule that the supervisor asks about."},
		func(_ context.Context, _ *mcp.CallToolRequest, in understoodInput) (*mcp.CallToolResult, understoodOutput, error) {
			if in.Rule == "" {
				return nil, understoodOutput{}, errors.New("rule is empty: name the rule that you acknowledge")
			}
			if err := understood(notice.Understood{Rule: in.Rule, Instead: in.Instead}); err != nil {
				return nil, understoodOutput{}, err
			}
			return nil, understoodOutput{Message: "The checkpoint has it, and people can see it."}, nil
		})
}
