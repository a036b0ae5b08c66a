// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunReport is the structured status report of a run (SALUTE).
type RunReport struct {
	// state of the run: Preparing, Active, Idle, Waiting (for a person's answer, look or approval, or for a background command of the agent, which activity.waitsFor names), Recovering (the agent was told of an anomaly that is not over), Escalating (steering does more than to tell it, or its plan fails), Frozen (checkpoints fail, or a budget is used up), Finishing, Complete or Aborted (ended before its work was done). It is empty where the run is of a version with other states.
	// +optional
	// +kubebuilder:validation:Enum=Preparing;Active;Idle;Waiting;Recovering;Escalating;Frozen;Finishing;Complete;Aborted
	State string `json:"state,omitempty"`
	// health: Nominal, Degraded or Critical.
	// +optional
	// +kubebuilder:validation:Enum=Nominal;Degraded;Critical
	Health string `json:"health,omitempty"`
	// problems that the watchdog works around. It then promotes less or is slower; its judgement is not affected.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Problems []string `json:"problems,omitempty"`
	// unacknowledged are the broken rules of severity Critical that the agent has not acknowledged, though it was told to twice: the rule and the
	// Checkpoint that found it. Nothing follows from it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Unacknowledged []string `json:"unacknowledged,omitempty"`
	// fixedInTime counts the broken rules that the watchdog saw between checkpoints, to warn the agent, and that were fixed before a checkpoint saw them.
	// It counts by rule and path and over all attempts, and it is all that is left of them. A command is warned by lines and has no such count.
	// +optional
	FixedInTime int64 `json:"fixedInTime,omitempty"`
	// paceLevel: Primary, Alternate, Contingent or Emergency.
	// +optional
	// +kubebuilder:validation:Enum=Primary;Alternate;Contingent;Emergency
	PaceLevel string `json:"paceLevel,omitempty"`
	// progress in the plan, for people ("2/5 tasks").
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Progress string `json:"progress,omitempty"`
	// task being worked on.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Task string `json:"task,omitempty"`
	// activity of the agent.
	// +optional
	Activity *SaluteActivity `json:"activity,omitempty"`
	// location of its work.
	// +optional
	Location *SaluteLocation `json:"location,omitempty"`
	// unit that works.
	// +optional
	Unit *SaluteUnit `json:"unit,omitempty"`
	// time it has been at it, in turns.
	// +optional
	Time *SaluteTime `json:"time,omitempty"`
	// environment it works with.
	// +optional
	Environment *SaluteEnvironment `json:"environment,omitempty"`
	// base is the commit that the work started from.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Base string `json:"base,omitempty"`
	// head is the last promoted commit.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Head string `json:"head,omitempty"`
	// agentRunning is true while the agent's process lives.
	// +optional
	AgentRunning bool `json:"agentRunning,omitempty"`
	// workspaceReady is true once the workspace is laid out.
	// +optional
	WorkspaceReady bool `json:"workspaceReady,omitempty"`
	// reportTime is when the watchdog said so.
	// +optional
	ReportTime *metav1.Time `json:"reportTime,omitempty"`
}

// SaluteActivity is what the agent is doing.
type SaluteActivity struct {
	// tool that was called last.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Tool string `json:"tool,omitempty"`
	// step is what that call was about: the file that it read or changed, where tools say so.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Step string `json:"step,omitempty"`
	// iterations spent on this step.
	// +optional
	Iterations int64 `json:"iterations,omitempty"`
	// waitsFor is the background command that the agent waits for since its model has given its last answer.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WaitsFor string `json:"waitsFor,omitempty"`
}

// SaluteLocation is where the agent is working.
type SaluteLocation struct {
	// directory below the workspace that all modified files are in, as of the newest checkpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Directory string `json:"directory,omitempty"`
	// filesModified since the base, as of the newest checkpoint.
	// +optional
	FilesModified int64 `json:"filesModified,omitempty"`
	// filesRead in this attempt, as far as tools tell.
	// +optional
	FilesRead int64 `json:"filesRead,omitempty"`
	// contracts whose locks are held.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Contracts []string `json:"contracts,omitempty"`
}

// SaluteUnit is who is working.
type SaluteUnit struct {
	// role of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role,omitempty"`
	// runtime that drives it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Runtime string `json:"runtime,omitempty"`
}

// SaluteTime is how long it has been at it, in turns of the conversation.
type SaluteTime struct {
	// turnsSinceProgress is how many turns changed nothing.
	// +optional
	TurnsSinceProgress int64 `json:"turnsSinceProgress,omitempty"`
	// contextTurnsRemaining is an estimate of how many more fit into the model's window.
	// +optional
	ContextTurnsRemaining int64 `json:"contextTurnsRemaining,omitempty"`
}

// SaluteEnvironment is what the agent works with.
type SaluteEnvironment struct {
	// model that answered last.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Model string `json:"model,omitempty"`
	// contextPercent of the model's window that is used; absent where contextTokensMax is.
	// +optional
	ContextPercent int32 `json:"contextPercent,omitempty"`
	// contextTokens that are used.
	// +optional
	ContextTokens int64 `json:"contextTokens,omitempty"`
	// contextTokensMax of the model's window; absent where the gateway's configuration has no contextWindow of the model. The condition
	// ContextPressure is not seen then.
	// +optional
	ContextTokensMax int64 `json:"contextTokensMax,omitempty"`
	// toolFailuresInARow is how many of the last tool calls failed, one after the other.
	// +optional
	ToolFailuresInARow int64 `json:"toolFailuresInARow,omitempty"`
	// toolFailures in this attempt.
	// +optional
	ToolFailures int64 `json:"toolFailures,omitempty"`
}

// Usage of models.
type Usage struct {
	// calls that have ended.
	// +optional
	Calls int64 `json:"calls,omitempty"`
	// inputTokens sent, cachedInputTokens included.
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`
	// cachedInputTokens are those that the provider had kept.
	// +optional
	CachedInputTokens int64 `json:"cachedInputTokens,omitempty"`
	// outputTokens received.
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// cost in the gateway's currency, a decimal number.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Cost string `json:"cost,omitempty"`
}
