// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

const (
	// LedgerPort is the gateway's port at which managers, and nobody else, read its ledger.
	LedgerPort = 8446
	// LedgerAudience is the audience of the manager's token for LedgerPort.
	LedgerAudience = "tidewaiter-ledger"
	// LedgerTokenFile is the file of that token.
	LedgerTokenFile = "/var/run/secrets/tidewaiter-ledger/token"
	// ManagerAccount is the manager's service account, in the system's namespace.
	ManagerAccount = "tidewaiter-manager"
	// GatewayAccount is the gateway's, there too.
	GatewayAccount = "tidewaiter-gateway"
	// TurnsPath of the port. Its parameters: feature (a UID), and after and limit for a list of turns, or call (a
	// Sequence) for one turn with its answer.
	TurnsPath = "/v1/turns"
	// MaxTurns of one answer.
	MaxTurns = 500
	// WindowHeader of the gateway's answers to calls has the context window of the model that answers, in tokens.
	WindowHeader = "Tidewaiter-Window"
	// CallHeader of the gateway's answers to calls of the watchdog itself has the ID that the call has in the ledger.
	CallHeader = "Tidewaiter-Call"
)

// Turns are the ledger's entries of one Feature.
type Turns struct {
	Turns []Turn `json:"turns"`
}

// Turn is one model call.
type Turn struct {
	// ID of the call. Reviews name the calls that they took by it. A record of several folded calls has an ID of its own.
	ID string `json:"id"`
	// Sequence is the number of the call within the Feature. Turn is the turn of the run that it belongs to, as Conversation counts them; 0 if
	// the watchdog has not said so.
	Sequence   int64     `json:"sequence"`
	Attempt    int64     `json:"attempt"`
	Task       string    `json:"task,omitempty"`
	Turn       int64     `json:"turn"`
	EndTime    time.Time `json:"endTime"`
	Dialect    string    `json:"dialect"`
	Backend    string    `json:"backend"`
	ModelAsked string    `json:"modelAsked"`
	Model      string    `json:"model"`
	Role       string    `json:"role"`
	// RequestDigest is the SHA-256 of what the agent sent.
	RequestDigest string `json:"requestDigest"`
	RequestBytes  int64  `json:"requestBytes"`
	AnswerBytes   int64  `json:"answerBytes"`
	// Templates is the hash of the templates that the gateway put before it.
	Templates         string `json:"templates,omitempty"`
	Retries           int64  `json:"retries"`
	InputTokens       int64  `json:"inputTokens"`
	CachedInputTokens int64  `json:"cachedInputTokens"`
	// CacheWriteTokens of the input were put into the provider's cache, CacheWriteHourTokens for an hour.
	CacheWriteTokens     int64 `json:"cacheWriteTokens,omitempty"`
	CacheWriteHourTokens int64 `json:"cacheWriteHourTokens,omitempty"`
	OutputTokens         int64 `json:"outputTokens"`
	// Uses of tools that the provider runs: web searches, fetched pages, code runs, searches in stored files, generated images and calls to
	// MCP servers.
	Searches       int64 `json:"searches,omitempty"`
	Fetches        int64 `json:"fetches,omitempty"`
	CodeExecutions int64 `json:"codeExecutions,omitempty"`
	FileSearches   int64 `json:"fileSearches,omitempty"`
	Images         int64 `json:"images,omitempty"`
	ConnectorCalls int64 `json:"connectorCalls,omitempty"`
	// Estimated says that some token counts are estimates, because the provider did not report them.
	Estimated bool `json:"estimated,omitempty"`
	// OutputLimit is the most output, in tokens, that budgets left to the call; 0 if budgets did not limit it.
	OutputLimit int64 `json:"outputLimit,omitempty"`
	// Cost in the gateway's currency, as a decimal number.
	Cost   string `json:"cost"`
	Status int    `json:"status"`
	Reason string `json:"reason"`
	// Count is the number of calls in this entry: more than one if the gateway folded calls that failed within one minute for the same reason.
	Count int64 `json:"count"`
	// Detail says more about the reason, such as the member of a request that was refused.
	Detail string `json:"detail,omitempty"`
	// FirstByte is the time until the answer began, Duration until it had ended, in milliseconds.
	FirstByte int64 `json:"firstByteMilliseconds"`
	Duration  int64 `json:"durationMilliseconds"`
	// Violations of Output templates that the answer had.
	Violations []TurnViolation `json:"violations,omitempty"`
	// ToolResults are the new tool results in the request, as far as the policy has the gateway record them. MoreToolResults is the number of
	// further ones. Both are set only if the caller asks for one turn.
	ToolResults     []ToolResult `json:"toolResults,omitempty"`
	MoreToolResults int64        `json:"moreToolResults,omitempty"`
	// Text of the model, Tools that it wants to call, and Answer as the backend gave it, without secrets; only if the caller asks for one turn.
	Text   string     `json:"text,omitempty"`
	Tools  []ToolCall `json:"tools,omitempty"`
	Answer string     `json:"answer,omitempty"`
	// Formatted is the text that the agent received, if it differs from Text.
	Formatted string `json:"formatted,omitempty"`
}

// TurnViolation is a rule that an answer broke.
type TurnViolation struct {
	Type string `json:"type"`
	// Severity is Minor if the gateway corrected the answer, and Major otherwise.
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// ToolResult is the result that a tool returned to the model.
type ToolResult struct {
	// Call is the ID of the call, and Tool the name of the tool, if the request says so.
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	// Bytes is the size of the result, and SHA256 its digest in hexadecimal.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Failed says that the client marked the result as an error.
	Failed bool `json:"failed,omitempty"`
	// Text of it without secrets, as far as it is recorded.
	Text string `json:"text,omitempty"`
}

// ToolCall is a tool call that a model asked for.
type ToolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}
