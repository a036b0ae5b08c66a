// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Tools that the watchdog serves to the agent's container over MCP (streamable HTTP).
const (
	// MCPPort is their port, only on the pod's loopback address.
	MCPPort = 8446
	// MCPPath of the URL.
	MCPPath = "/mcp"
	// EnvMCP names their URL in the agent's environment; it is set only where the watchdog serves tools.
	EnvMCP = "TIDEWAITER_MCP_URL"
	// MaxToolID bounds the ids that an agent gives to its operations and questions, in characters (as in spec.answers).
	MaxToolID = 63
	// MaxQuestionBytes bounds a question: it becomes the message of a condition.
	MaxQuestionBytes = 1000
	// MaxPatchBytes bounds one patch: many times the size of one answer of a model.
	MaxPatchBytes = 1 << 20
)
