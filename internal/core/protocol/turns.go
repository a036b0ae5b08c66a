// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

const (
	// LedgerPort of the gateway is where managers, and nobody else, read its ledger.
	LedgerPort = 8446
	// LedgerAudience is who the manager's token for that is made for.
	LedgerAudience = "tidewaiter-ledger"
	// LedgerTokenFile holds it.
	LedgerTokenFile = "/var/run/secrets/tidewaiter-ledger/token"
	// ManagerAccount is the manager's service account, in the system's namespace.
	ManagerAccount = "tidewaiter-manager"
	// GatewayAccount is the gateway's, there too.
	GatewayAccount = "tidewaiter-gateway"
	// TurnsPath of the port. Its parameters: feature (a UID), and after and limit for a list of turns, or call (a
	// Sequence) for one with what was answered.
	TurnsPath = "/v1/turns"
	// MaxTurns of one answer.
	MaxTurns = 500
	// WindowHeader of the gateway's answers to calls has the context window of the model that answers, in tokens.
	WindowHeader = "Tidewaiter-Window"
)

// Turns is what the ledger has of a Feature.
type Turns struct {
	Turns []Turn `json:"turns"`
}

// Turn is one call of a model.
type Turn struct {
	// Sequence counts the calls of the Feature. Turn is the turn of the run that it belongs to, as Conversation counts them; 0 where its watchdog has
	// not said so.
	Sequence int64  `json:"sequence"`
	Attempt  int64  `json:"attempt"`
	Task     string `json:"task,omitempty"`
	Turn     int64  `json:"turn"`
	// At is when it ended.
	At         time.Time `json:"at"`
	Dialect    string    `json:"dialect"`
	Backend    string    `json:"backend"`
	ModelAsked string    `json:"modelAsked"`
	Model      string    `json:"model"`
	Role       string    `json:"role"`
	// RequestDigest is the SHA-256 of what the agent sent.
	RequestDigest string `json:"requestDigest"`
	RequestBytes  int64  `json:"requestBytes"`
	AnswerBytes   int64  `json:"answerBytes"`
	// Templates is the hash of what came before it.
	Templates         string `json:"templates,omitempty"`
	Retries           int64  `json:"retries"`
	InputTokens       int64  `json:"inputTokens"`
	CachedInputTokens int64  `json:"cachedInputTokens"`
	// CacheWriteTokens of the input were put into the provider's cache, CacheWriteHourTokens for an hour.
	CacheWriteTokens     int64 `json:"cacheWriteTokens,omitempty"`
	CacheWriteHourTokens int64 `json:"cacheWriteHourTokens,omitempty"`
	OutputTokens         int64 `json:"outputTokens"`
	// Uses of tools that the provider has run: searches of the web, pages that it has read, code that it has run, searches in files that it
	// keeps, images that it has made and calls of MCP servers.
	Searches       int64 `json:"searches,omitempty"`
	Fetches        int64 `json:"fetches,omitempty"`
	CodeExecutions int64 `json:"codeExecutions,omitempty"`
	FileSearches   int64 `json:"fileSearches,omitempty"`
	Images         int64 `json:"images,omitempty"`
	ConnectorCalls int64 `json:"connectorCalls,omitempty"`
	// Estimated says that the provider has not counted all tokens.
	Estimated bool `json:"estimated,omitempty"`
	// OutputLimit is the most output, in tokens, that budgets left to the call; 0 where it had what it asked for.
	OutputLimit int64 `json:"outputLimit,omitempty"`
	// Cost in the gateway's currency, as a decimal number.
	Cost   string `json:"cost"`
	Status int    `json:"status"`
	Reason string `json:"reason"`
	// Count is how many calls it stands for: more than one where calls that failed in one minute for one reason were folded.
	Count int64 `json:"count"`
	// Detail says more about the reason, such as the member of a request that was refused.
	Detail string `json:"detail,omitempty"`
	// FirstByte is the time until the answer began, Duration until it had ended, in milliseconds.
	FirstByte int64 `json:"firstByteMilliseconds"`
	Duration  int64 `json:"durationMilliseconds"`
	// Violations of Output templates that the answer had.
	Violations []TurnViolation `json:"violations,omitempty"`
	// ToolResults that were new in the request, as far as the policy has them recorded, and MoreToolResults is how many there were beside those; only
	// where one turn is asked for.
	ToolResults     []ToolResult `json:"toolResults,omitempty"`
	MoreToolResults int64        `json:"moreToolResults,omitempty"`
	// Text that the model said, Tools that it wanted to be called, and Answer as the backend gave it, without secrets; only
	// where one turn is asked for.
	Text   string     `json:"text,omitempty"`
	Tools  []ToolCall `json:"tools,omitempty"`
	Answer string     `json:"answer,omitempty"`
	// Formatted is the text that the agent got, where that is another one.
	Formatted string `json:"formatted,omitempty"`
}

// TurnViolation is what an answer did not keep to.
type TurnViolation struct {
	Type string `json:"type"`
	// Severity is Minor where it was corrected, else Major.
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// ToolResult is what a tool gave back to the model.
type ToolResult struct {
	// Call is the ID of the call, and Tool the name of the tool, where the request tells.
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	// Bytes is the size of what it gave, and SHA256 the digest of that, in hexadecimal.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Failed says that the client marks it as an error.
	Failed bool `json:"failed,omitempty"`
	// Text of it without secrets, as far as it is recorded.
	Text string `json:"text,omitempty"`
}

// ToolCall is what a model wanted.
type ToolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}
