// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steering decides what the watchdog does about an agent in trouble, and which text the agent gets. core/anomaly finds what is wrong.
package steering

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Rung of the ladder of measures against an anomaly, as policies name it.
type Rung = policy.Rung

// Rungs, the mildest first.
const (
	Observe   = policy.RungObserve
	Nudge     = policy.RungNudge
	Directive = policy.RungDirective
	Surgery   = policy.RungSurgery
	NoTools   = policy.RungNoTools
	Hold      = policy.RungHold
	Rollback  = policy.RungRollback
	Restart   = policy.RungRestart
	Block     = policy.RungBlock
)

// above says whether a rung is above another. One that is not known is below all.
func above(a, b Rung) bool {
	return slices.Index(policy.Ladder(), a) > slices.Index(policy.Ladder(), b)
}

// Plan of a role, by the levels of PACE.
type Plan struct {
	Alternate, Contingent, Emergency string
}

// Rules of a policy and of a role.
type Rules struct {
	anomaly.Thresholds

	// Ladder is how far it may go. A turn without tools is allowed whenever a nudge is.
	Ladder Rung
	// HoldFor is how long the watchdog holds a call before a rung above Hold may follow. If Hold is the last rung, it holds the call until a user acts.
	HoldFor time.Duration
	// Plan of the role.
	Plan Plan
}

// Defaults are the values where neither a policy nor a role sets any.
func Defaults() Rules { return Rules{Thresholds: anomaly.Defaults(), Ladder: Nudge} }

// allows says whether the ladder goes as far.
func (r Rules) allows(rung Rung) bool {
	return !above(rung, r.Ladder) || rung == NoTools && !above(Nudge, r.Ladder)
}

// TurnContext is the occasion of a decision: a request of a thread before the watchdog passes it on, or the clock.
type TurnContext struct {
	Thread int
	Kind   conversation.Kind
	// Turn is the number of the request in its thread, RunTurn its number in the run, which users and agents see; both are 0 if there is no request.
	Turn, RunTurn int64
	Now           time.Time
	// Clock says that there is no request, so no text can reach the agent now.
	Clock bool
	// Closed says that the request has no place for text: the text waits for a later request, and steps that need a text wait too.
	Closed bool
	// Reach of an agent that calls no model; only with Clock.
	Reach Reach
}

// Step is something to do.
type Step struct {
	Rung   Rung         `json:"rung"`
	Kind   anomaly.Kind `json:"kind"`
	Thread int          `json:"thread"`
	// Message for the agent; of Hold and what is above it, for users too. "" for none.
	Message string `json:"message,omitempty"`
	// Otherwise is the message of a step of Hold and above that could not be done.
	Otherwise string `json:"otherwise,omitempty"`
	// Until is the latest end of the hold; zero if a user must act. Only for Hold.
	Until time.Time `json:"until,omitzero"`
	// Channel of the message, if it is not a request.
	Channel string `json:"channel,omitempty"`
	// Over says that the anomaly is over. Rung is the highest that steering tried; if it holds something, the caller releases it.
	Over    bool            `json:"over,omitempty"`
	Finding anomaly.Finding `json:"finding"`
}

// Halts says that a step keeps a call back until something else has been done.
func (s Step) Halts() bool { return !s.Over && above(s.Rung, NoTools) }

// maxRecovers bounds the tools that are remembered.
const maxRecovers = 16

// State is what steering has done. The zero value has done nothing. It is stored as JSON.
type State struct {
	Threads []Thread `json:"threads,omitempty"`
	// Recovered are tools on which surgery was tried, in episodes that are over.
	Recovered []Tool `json:"recovered,omitempty"`
	// Spent are the rungs that steering tried on the main thread before a restart of the agent. It does not try them again on the same task.
	Spent []Rung `json:"spent,omitempty"`
}

// Anew is the state that remains when the agent starts its task again from the beginning, given the episodes.
func (s *State) Anew(episodes []anomaly.Episode) State {
	spent := []Rung{Restart}
	for _, e := range episodes {
		if slices.Contains(e.Tried, Rollback) {
			spent = append(spent, Rollback)
		}
	}
	spent = append(spent, s.Spent...)
	slices.Sort(spent)
	return State{Spent: slices.Compact(spent)}
}

// Spend says that a rung was tried on the main thread.
func (s *State) Spend(rung Rung) {
	if !slices.Contains(s.Spent, rung) {
		s.Spent = append(s.Spent, rung)
	}
}

// Thread says when steering last checked a thread, and which messages the thread got.
type Thread struct {
	ID     int    `json:"id"`
	Main   bool   `json:"main,omitempty"`
	Looked int64  `json:"looked,omitempty"`
	Told   []Told `json:"told,omitempty"`
}

// Told is the last message to the agent about a kind of anomaly: the turn of its thread and of the run, and how grave the anomaly was.
type Told struct {
	Kind    anomaly.Kind `json:"kind"`
	Turn    int64        `json:"turn"`
	RunTurn int64        `json:"runTurn,omitempty"`
	Grade   int          `json:"grade"`
}

// Tool of a thread.
type Tool struct {
	Thread int    `json:"thread"`
	Name   string `json:"name"`
}

// Retain keeps the known threads and forgets all others.
func (s *State) Retain(known func(thread int) bool) {
	s.Threads = slices.DeleteFunc(s.Threads, func(t Thread) bool { return !known(t.ID) })
}

// thread of a turn; it is made where there is none. The newest is the last of them.
func (s *State) thread(turn TurnContext) *Thread {
	t := Thread{ID: turn.Thread}
	if i := slices.IndexFunc(s.Threads, func(t Thread) bool { return t.ID == turn.Thread }); i >= 0 {
		t = s.Threads[i]
		s.Threads = slices.Delete(s.Threads, i, i+1)
	}
	t.Main = turn.Kind == conversation.KindMain
	s.Threads = append(s.Threads, t)
	return &s.Threads[len(s.Threads)-1]
}
