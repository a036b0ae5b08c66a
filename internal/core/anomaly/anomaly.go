// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package anomaly recognises an agent that is stuck, that repeats itself or that runs out of room, by what the watchdog sees of it: the
// conversation, the workspace and the processes. A State holds what it sees. A State is bounded, and a watchdog reads it again after a
// restart. core/session/steering decides what to do about a finding.
package anomaly

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Kind of a finding: the condition of the Feature that it sets.
type Kind string

// Kinds of findings, most urgent first.
const (
	PaceEscalated   Kind = "PaceEscalated"
	CascadeFailure  Kind = "CascadeFailure"
	ContextPressure Kind = "ContextPressure"
	AgentStalled    Kind = "AgentStalled"
	AgentLooping    Kind = "AgentLooping"
)

// kinds in their order.
func kinds() []Kind {
	return []Kind{PaceEscalated, CascadeFailure, ContextPressure, AgentStalled, AgentLooping}
}

// Detectors, by their names. Pace follows from the findings of the others.
const (
	Pace         = "pace"
	Cascade      = "cascade"
	Pressure     = "pressure"
	Thrash       = "thrash"
	Silence      = "silence"
	Provider     = "provider"
	Stall        = "stall"
	SameFailure  = "same-failure"
	FailingTool  = "failing-tool"
	BadArguments = "bad-arguments"
	SameResult   = "same-result"
	Oscillation  = "oscillation"
	Reversal     = "reversal"
	SameWords    = "same-words"
	Failures     = "failures"
	Trials       = "trials"
	Refusals     = "refusals"
)

// Tier says how far something has gone: first the agent gets a message, then surgery removes the repeated calls from its context, and at
// last it must answer without tools.
type Tier int

// Tiers, the least first.
const (
	Warn Tier = iota + 1
	Surgery
	Breaker
)

// Level of the PACE plan of a role: how far the work has fallen off its plan.
type Level int

// Levels, in their order.
const (
	Primary Level = iota
	Alternate
	Contingent
	Emergency
)

func (l Level) String() string {
	return [...]string{"primary", "alternate", "contingent", "emergency"}[min(max(l, Primary), Emergency)]
}

// Thresholds of a policy and of a role. Numbers are turns unless a field says otherwise.
type Thresholds struct {
	// Role says that the agent has a role in its policy, whose PACE plan applies. Without a role there is no plan to fall off: an agent
	// without progress counts as stalled.
	Role bool
	// CheckEvery is the number of turns between two checks of the conversation, and Cooldown the number between two messages about the same anomaly.
	CheckEvery, Cooldown int
	// Stall is how many turns may bring nothing.
	Stall int
	// Loop is how many equal calls in a row may fail in the same way. All other repetitions are measured by it.
	Loop int
	// ContextPercent of the model's window that calls for a wrap-up, and ContextUrgent the share at which the agent must not begin anything else.
	ContextPercent, ContextUrgent int
	// Compaction is the point at which the client compacts its context by itself: below it, a full context is not a finding. It is zero if a
	// policy sets ContextPercent.
	Compaction Compaction
	// Cascade is how many different tools may fail within the last five calls.
	Cascade int
	// Silence is the maximum time without activity while neither a model nor a tool is at work; ModelSilence and ToolSilence are the maximum while one is.
	Silence, ModelSilence, ToolSilence time.Duration
}

// Defaults are the values where neither a policy nor a role sets any.
func Defaults() Thresholds {
	return Thresholds{
		CheckEvery: policy.BuiltinCheckEvery, Cooldown: policy.BuiltinCooldown, Stall: policy.BuiltinStall, Loop: policy.BuiltinLoop,
		ContextPercent: policy.BuiltinContextPercent, ContextUrgent: 90, Cascade: policy.BuiltinCascade,
		// A model may be silent for five minutes under the longest timeout profile, and gets three requests. A tool that neither
		// computes nor prints nor writes for half an hour waits for something that does not come.
		Silence: policy.BuiltinSilence, ModelSilence: 20 * time.Minute, ToolSilence: 30 * time.Minute,
	}
}

// Finding is an anomaly: something that is wrong with an agent now.
type Finding struct {
	Kind Kind `json:"kind"`
	// Detector that has found it.
	Detector string `json:"detector"`
	// Causes of PaceEscalated: the detectors whose findings have led to it.
	Causes string `json:"causes,omitempty"`
	// Thread of the conversation, and whether it is the main one.
	Thread int  `json:"thread"`
	Main   bool `json:"main,omitempty"`
	// Turn of the thread, RunTurn and time at which it was seen first.
	Turn    int64     `json:"turn"`
	RunTurn int64     `json:"runTurn,omitempty"`
	Since   time.Time `json:"since"`
	Tier    Tier      `json:"tier"`
	// Tool that fails, if it is a single one; only with characters of identifiers.
	Tool string `json:"tool,omitempty"`
	// Count of what Evidence counts.
	Count int `json:"count,omitempty"`
	// Level of PaceEscalated.
	Level Level `json:"level,omitempty"`
	// Cause is protocol.CauseProvider if the agent's model calls have failed meanwhile and that is not its fault. Steering then does nothing
	// about the agent.
	Cause string `json:"cause,omitempty"`
	// Mute says that telling the agent would change nothing, because it does not listen or is not at fault.
	Mute bool `json:"mute,omitempty"`
	// Calm says that the agent has done something else since. It is over when that lasts.
	Calm bool `json:"calm,omitempty"`
	// Succeeds says that what repeats has succeeded, and Worked that calls have had an effect since the newest valid checkpoint. An agent that
	// begins again would make these calls twice.
	Succeeds bool `json:"succeeds,omitempty"`
	Worked   bool `json:"worked,omitempty"`
	// Evidence says what was seen, with figures, as a sentence without its full stop.
	Evidence string `json:"evidence"`
	// fails says that Count counts failures of a tool.
	fails bool
}

// Work is what changed in the workspace. The watchdog says so before anything else that it hears, and after each checkpoint.
type Work struct {
	// Tree is the id of the newest captured tree; "" says nothing.
	Tree string
	// Changed says that paths changed since the last look.
	Changed bool
	// Verdict of the newest checkpoint; "" says nothing.
	Verdict string
}

// Pulse is what the agent's processes have used, in all. The watchdog takes it every 30 seconds or so.
type Pulse struct {
	CPU       time.Duration `json:"cpu,omitempty"`
	Processes int           `json:"processes,omitempty"`
	// Output is how many bytes they have written in all: what they print, and what they send.
	Output int64 `json:"output,omitempty"`
	// Commands are the processes other than the agent's own, youngest first.
	Commands []Command `json:"commands,omitempty"`
	// Answers says that some of a model's answer has come since the last pulse.
	Answers bool `json:"answers,omitempty"`
	// Lives says that the connection of an answer has shown a sign of life, even if nothing of the answer has come.
	Lives bool `json:"lives,omitempty"`
	// Idle says that the agent has nothing to do: it waits for a user, has a call on hold, or has ended its turn and waits for the next task.
	Idle bool `json:"idle,omitempty"`
}

// Command is a process that the agent has started.
type Command struct {
	// Name that it has given itself.
	Name string        `json:"name"`
	Age  time.Duration `json:"age"`
}

// main says whether a thread is the one about the task.
func (t *Thread) main() bool { return t.Kind == conversation.KindMain }
