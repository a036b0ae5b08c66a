// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger decides what the ledger records of model calls, what they cost, and whether a budget allows another one. It sees only
// values; internal/gateway/ledger stores them.
package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// MaxAnswer is how much of an answer is stored, in bytes.
	MaxAnswer = 4 << 20
	// MaxFolded is how many bytes the ledger stores of the first of several folded answers: the errors of providers have some hundred.
	MaxFolded = 4 << 10
	// failedStatus is the first status of HTTP that says that a call failed.
	failedStatus = 400
	// MaxResults is how many results of tools are recorded of a turn: a quarter of what the watchdog reads of one message (conversation.MaxParts).
	MaxResults = 64
	// MaxResult is how much is stored of the text of a result, in bytes: four results of the most have room in a turn.
	MaxResult = 16 << 10
	// MaxResultTexts is how many bytes the ledger stores of the texts of all results of a turn. A session of 500 turns has less than 32 MiB,
	// as much as eight answers of the maximum size.
	MaxResultTexts = 64 << 10
	// MaxSecret is how many more bytes of a text the search reads than the ledger stores, so that it finds a secret whose end would be cut off. Keys have
	// some kilobytes.
	MaxSecret = 64 << 10
	// MaxDetail of a record, in bytes, and of one call that is folded, so that there is room for some.
	MaxDetail, maxPart = 1 << 10, 256
)

// betweenDetails of calls that were folded.
const betweenDetails = "; "

// Interaction is one model call that has ended.
type Interaction struct {
	// ID of the call. It is recorded once, however often it is given.
	ID string
	// At is when the call ended.
	At time.Time
	// FeatureUID, Namespace and Feature are who called.
	FeatureUID, Namespace, Feature string
	// Keep is how long the Feature's policy keeps its records in the ledger. It is not a part of the record.
	Keep time.Duration
	// Attempt and Task of the agent's work.
	Attempt int64
	Task    string
	// Turn of the run that the call belongs to, as its watchdog counts them; 0 if it has not said so.
	Turn int64
	// Sequence is the number of the call within the Feature, from 1. The store assigns it.
	Sequence int64
	// Dialect of the call, and the Backend that got it.
	Dialect, Backend string
	// ModelAsked is the model that the agent named, Model the one that answered, and Role its role in the policy.
	ModelAsked, Model, Role string
	// RequestDigest is the SHA-256 of the request in hexadecimal, and RequestBytes its size.
	RequestDigest string
	RequestBytes  int64
	// TemplateHash names the templates that the gateway put before the request; empty if there were none.
	TemplateHash string
	// AnswerBytes is the size of the whole answer, also where less of it is stored.
	AnswerBytes int64
	// Raw is the answer as the backend gave it, without secrets.
	Raw []byte
	// Formatted is the answer as the agent got it; empty if it equals Raw.
	Formatted []byte
	// Results of tools that are new in the request, as far as the policy has the gateway record them, without secrets, and MoreResults is the
	// number of further ones. A record of many calls has none.
	Results     []ToolResult
	MoreResults int64
	// Violations of output rules that were found in the answer.
	Violations []Violation
	// Retries are the calls of the backend after the first.
	Retries int64
	Tokens  Tokens
	// Estimated says that the provider has not counted all of Tokens.
	Estimated bool
	// OutputLimit is the most output, in tokens, that budgets left to the call; 0 if they did not limit it.
	OutputLimit int64
	// Cost in millionths of the currency that prices are in.
	Cost int64
	// Status that the agent got, and the Reason in one word.
	Status int
	Reason string
	// FirstByte is the time until the answer began, Duration until it had ended.
	FirstByte, Duration time.Duration
	// Count is how many calls the record represents: more than one if the ledger folded refused calls. The store assigns it.
	Count int64
	// Detail says more about the reason, such as the member of a request that was refused. A record of folded calls has the details of all of
	// them; empty if there are none.
	Detail string
}

// Folds says whether the ledger folds the record of a call with others: the gateway refused it, or its answer is an error, and it has cost
// nothing. An agent can make such calls as fast as the answers come, and no budget ends them.
func (i Interaction) Folds() bool {
	return i.Tokens == Tokens{} && i.Cost == 0 && i.Status >= failedStatus
}

// FoldID is the ID of the record that a call is folded into: one for all calls of a Feature that ended in the same minute for the same
// reason. The agent chooses no part of it, so that it cannot make many of them.
func (i Interaction) FoldID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q %q %d %d", i.FeatureUID, i.Attempt, i.Task, i.Backend, i.Reason, i.Status, i.At.Unix()/60))
	return "folded-" + hex.EncodeToString(sum[:16])
}

// JoinDetails adds the details of more calls to a record's details, each once, as far as there is room.
func JoinDetails(have, more string) string {
	for part := range strings.SplitSeq(more, betweenDetails) {
		have = joinDetail(have, plain.CutBytes(part, maxPart))
	}
	return have
}

func joinDetail(have, more string) string {
	switch full := len(have)+len(betweenDetails)+len(more)+len(plain.CutMark) > MaxDetail; {
	case have == "" || more == "":
		return have + more
	case slices.Contains(strings.Split(have, betweenDetails), more):
		return have
	case !full:
		return have + betweenDetails + more
	case strings.HasSuffix(have, plain.CutMark):
		return have
	}
	return have + plain.CutMark
}

// Violation of an output rule.
type Violation struct {
	Type     string `json:"type"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// ToolResult is the result that a tool returned to the model.
type ToolResult struct {
	// Call is the ID of the call, and Tool the name of the tool; empty if the request does not say.
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	// Bytes is the size of the result, and SHA256 the digest of it in hexadecimal, as conversation.Given has them.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Failed says that the client marks it as an error.
	Failed bool `json:"failed,omitempty"`
	// Text of it, as far as it is kept.
	Text string `json:"text,omitempty"`
}

// Uses of tools that a provider runs itself. Some of them it bills by use.
type Uses struct {
	// Searches of the web, and Fetches of pages.
	Searches, Fetches int64
	// Executions of code.
	Executions int64
	// FileSearches look through files that the provider keeps.
	FileSearches int64
	// Images that were made.
	Images int64
	// Connectors are calls of MCP servers.
	Connectors int64
}

// each gives the number of each kind, in the order of the fields.
func (u Uses) each() [6]int64 {
	return [...]int64{u.Searches, u.Fetches, u.Executions, u.FileSearches, u.Images, u.Connectors}
}

// Tokens of a call, and its uses of tools that the provider runs. Each token counts in one of the fields. Of the request's tokens, Cached
// came from the provider's cache. Writes went into it for minutes, LongWrites for an hour, and Input are the others. Output includes the
// model's thoughts.
type Tokens struct {
	Input, Output, Cached, Writes, LongWrites int64
	// Uses of tools that the provider runs.
	Uses
}

// Sent is the number of tokens of the request. Negative numbers count as 0.
func (t Tokens) Sent() (sum int64) {
	for _, n := range []int64{t.Input, t.Cached, t.Writes, t.LongWrites} {
		sum = add(sum, max(n, 0))
	}
	return sum
}

// Plus adds tokens.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{
		Input: add(t.Input, o.Input), Output: add(t.Output, o.Output), Cached: add(t.Cached, o.Cached),
		Writes: add(t.Writes, o.Writes), LongWrites: add(t.LongWrites, o.LongWrites), Uses: Uses{
			Searches: add(t.Searches, o.Searches), Fetches: add(t.Fetches, o.Fetches), Executions: add(t.Executions, o.Executions),
			FileSearches: add(t.FileSearches, o.FileSearches), Images: add(t.Images, o.Images), Connectors: add(t.Connectors, o.Connectors),
		},
	}
}

// Amount of tokens that a call has used, and its cost.
func (t Tokens) Amount(cost int64) Amount {
	return Amount{Input: t.Sent(), Output: max(t.Output, 0), Cost: max(cost, 0)}
}
