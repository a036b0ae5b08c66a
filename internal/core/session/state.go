// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session supervises one agent's conversation with its models: what each request, each answer and the passing of time say about it,
// what the watchdog does about it, and which texts the agent gets. core/conversation reads, core/anomaly finds what is wrong and
// core/session/steering decides what follows; a session combines these with texts of users and checkpoints into the next request.
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

// State is what is remembered of the conversation about a task. The zero value remembers nothing. It is stored as JSON: as a cache, for what was decided is
// in the journal, and most of what was said is heard again.
type State struct {
	Task      string            `json:"task"`
	Book      conversation.Book `json:"book"`
	Anomalies anomaly.State     `json:"anomalies"`
	Steering  steering.State    `json:"steering"`
	// Threads have what was said to each. The Book knows which threads there are: nobody remembers anything of another one.
	Threads map[int]*Thread `json:"threads,omitempty"`
	// Bared is the turn without tools that the agent may end with; nil if there was none, or the agent has gone on after it.
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
	// Act that is wanted; nil for none.
	Act *Act `json:"act,omitempty"`
	// Word that an agent which asks no model has not been told; nil for none.
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

// Thread is what was said to a thread of the conversation.
type Thread struct {
	Notes []dialect.Note `json:"notes,omitempty"`
	Cuts  []dialect.Cut  `json:"cuts,omitempty"`
	// Unsaid is what could not be said yet, because a request had no place for it.
	Unsaid string `json:"unsaid,omitempty"`
	// Bare is, where the last turn has no tools, how many messages the request had, because a client may send it once more; 0 if it has.
	Bare int `json:"bare,omitempty"`
}

// Facts are what holds while something is decided.
type Facts struct {
	Now   time.Time
	Terms Terms
	// Attempt is its number.
	Attempt int64
	// Recorded is what the journal has of steering.
	Recorded journal.Steered
	// Reach of an agent that asks no model: whether it has tools, and takes lines.
	Reach steering.Reach
	// Idle says that the agent has nothing to do: it waits for a user, is frozen, or has ended.
	Idle bool
	// Directives that the agent is given, and how far each is.
	Directives directives.List
}

// Effects are what is to be done, in this order, because of something that was decided.
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
	// Full says that steps have reached their limit: what is said in requests is not written down any more.
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
