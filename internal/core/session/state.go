// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session supervises one agent's conversation with its models. It observes each request, each answer and the passing of time, and
// decides what the watchdog does and which texts the agent gets. Package core/conversation reads, core/anomaly finds what is wrong and
// core/session/steering decides what follows. A session combines these with texts of users and checkpoints into the next request.
//
// A State is a function of what it was given: it has no clock, no disk and no network. What it wants done is in the Effects of each call.
package session

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// State is the memory of the conversation about a task. The zero value is empty. It is stored as JSON, as a cache: the journal has the
// decisions, and later requests repeat most of the conversation.
type State struct {
	Task      string            `json:"task"`
	Book      conversation.Book `json:"book"`
	Anomalies anomaly.State     `json:"anomalies"`
	Steering  steering.State    `json:"steering"`
	// Threads have the texts for each thread. The Book knows which threads exist; State forgets all others.
	Threads map[int]*Thread `json:"threads,omitempty"`
	// Bared is the turn without tools with which the agent may end; nil if there was none, or the agent has continued after it.
	Bared *Bared `json:"bared,omitempty"`
	// Directed is what the main thread contains about directives.
	Directed directives.Told `json:"directed,omitempty"`
	// Stood: the main thread contains what users had said before it began, or before it was compacted.
	Stood bool `json:"stood,omitempty"`
	// Board has the notices about its work that the agent must get, and the ones that it has.
	Board notice.Board `json:"board,omitzero"`
	// Turns of main threads, over all tasks and attempts: the only number of a turn that users and agents see.
	Turns int64 `json:"turns"`
	// Attempt that it was kept in last.
	Attempt int64 `json:"attempt,omitempty"`
	// Act that the session wants; nil for none.
	Act *Act `json:"act,omitempty"`
	// Word that waits for an agent that calls no model; nil for none.
	Word *Word `json:"word,omitempty"`
	// Step is the number of the newest step of steering that this State knows of.
	Step int64 `json:"step,omitempty"`
	Seen Seen  `json:"seen"`

	// born counts the agents whose conversation was forgotten, because they have ended.
	born int64
	// moved says that the workspace has changed since anything was heard.
	moved    bool
	reported reported
	// recalled are the steps of the journal that were decided after what is remembered, at requests that may come once more.
	recalled []protocol.SteeringStep
	// redactor takes secrets out of what is written down; nil before it is needed.
	redactor *secrets.Redactor
}

// Thread has the supervisor's texts in a thread of the conversation.
type Thread struct {
	Notes []dialect.Note `json:"notes,omitempty"`
	Cuts  []dialect.Cut  `json:"cuts,omitempty"`
	// Unsaid is the text that still waits, because a request had no place for it.
	Unsaid string `json:"unsaid,omitempty"`
	// Bare is the number of messages of the last request if its turn had no tools, because a client may repeat it; 0 otherwise.
	Bare int `json:"bare,omitempty"`
}

// Facts are what holds while something is decided.
type Facts struct {
	Now   time.Time
	Terms Terms
	// Attempt is its number.
	Attempt int64
	// Recorded has the journal's records of steering.
	Recorded journal.Steered
	// Reach of an agent that calls no model: whether it has tools, and takes lines.
	Reach steering.Reach
	// Idle says that the agent has nothing to do: it waits for a user, is frozen, or has ended.
	Idle bool
	// Directives are the current directives with their states.
	Directives directives.List
}

// Effects are the effects of a decision, which the caller carries out in this sequence.
type Effects struct {
	// News of directives.
	News directives.News
	// Acknowledged are broken rules that the agent has acknowledged. One that cannot be kept is given back: see State.Unacknowledged.
	Acknowledged []protocol.Acknowledgment
	// Steps of steering, with their numbers. They are written down before anything that they say is done.
	Steps []protocol.SteeringStep
	// Keep says that the State is to be kept now.
	Keep bool
	// Told is the notice about its work that the agent got; "" for none.
	Told string
	// Report says that there is something to report, and Later after how long there will be; 0 for never.
	Report bool
	Later  time.Duration
	// Full says that steps have reached their limit: the journal no longer records texts in requests.
	Full bool

	// asked are the acknowledgments that were due before.
	asked []notice.Ask
}

// decision is one call of a State.
type decision struct {
	s *State
	f Facts
	e Effects
}
