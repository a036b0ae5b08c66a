// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunReport is the structured status report (SALUTE) of a run.
type RunReport struct {
	// state is the state of the run: Preparing, Active, Idle, Waiting, Recovering, Escalating, Frozen, Finishing, Complete or Aborted. Waiting is for a user's answer, look or approval, or for a background command of the agent, which activity.waitsFor names. Recovering means that the watchdog told the agent of an anomaly that is not over. Escalating means that steering does more than tell the agent, or that its plan fails. Frozen means that checkpoints fail, or that a budget has nothing left. Aborted means that the run ended before its work was done. The state is empty if the run is of a version with other states.
	// +optional
	// +kubebuilder:validation:Enum=Preparing;Active;Idle;Waiting;Recovering;Escalating;Frozen;Finishing;Complete;Aborted
	State string `json:"state,omitempty"`
	// health is the health of the run: Nominal, Degraded or Critical.
	// +optional
	// +kubebuilder:validation:Enum=Nominal;Degraded;Critical
	Health string `json:"health,omitempty"`
	// problems are the problems that the watchdog works around. It then promotes less or is slower; its verdicts do not change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Problems []string `json:"problems,omitempty"`
	// unacknowledged are the broken rules of severity Critical that the agent has not acknowledged, though the watchdog told it twice. Each entry has the rule and the Checkpoint that found it. Nothing follows from it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Unacknowledged []string `json:"unacknowledged,omitempty"`
	// fixedInTime counts the broken rules that the agent fixed before a checkpoint saw them. The watchdog looks for them between checkpoints, to warn the agent. The count is by rule and path and over all attempts, and nothing else remains of them. The runtime command gets its warnings as lines and has no such count.
	// +optional
	FixedInTime int64 `json:"fixedInTime,omitempty"`
	// paceLevel is the level of the agent's PACE plan, which says what to do when its way fails: Primary, Alternate, Contingent or Emergency.
	// +optional
	// +kubebuilder:validation:Enum=Primary;Alternate;Contingent;Emergency
	PaceLevel string `json:"paceLevel,omitempty"`
	// progress is the progress in the plan, for users ("2/5 tasks").
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Progress string `json:"progress,omitempty"`
	// task is the task that the agent works on.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Task string `json:"task,omitempty"`
	// activity is what the agent is doing.
	// +optional
	Activity *SaluteActivity `json:"activity,omitempty"`
	// location is where the agent works.
	// +optional
	Location *SaluteLocation `json:"location,omitempty"`
	// unit is who works.
	// +optional
	Unit *SaluteUnit `json:"unit,omitempty"`
	// time is how long the agent has been at work, in turns.
	// +optional
	Time *SaluteTime `json:"time,omitempty"`
	// environment is what the agent works with.
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
	// workspaceReady is true once the workspace is ready for the agent.
	// +optional
	WorkspaceReady bool `json:"workspaceReady,omitempty"`
	// reportTime is when the watchdog made the report.
	// +optional
	ReportTime *metav1.Time `json:"reportTime,omitempty"`
}

// SaluteActivity is what the agent is doing.
type SaluteActivity struct {
	// tool is the tool that the agent called last.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Tool string `json:"tool,omitempty"`
	// step is what that call was about: the file that it read or changed, if the tool says so.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Step string `json:"step,omitempty"`
	// iterations is the number of iterations on this step.
	// +optional
	Iterations int64 `json:"iterations,omitempty"`
	// waitsFor is the background command that the agent has waited for since its model gave its last answer.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WaitsFor string `json:"waitsFor,omitempty"`
}

// SaluteLocation is where the agent is working.
type SaluteLocation struct {
	// directory is the folder below the workspace that all modified files are in, as of the newest checkpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Directory string `json:"directory,omitempty"`
	// filesModified is the number of files that differ from the base, as of the newest checkpoint.
	// +optional
	FilesModified int64 `json:"filesModified,omitempty"`
	// filesRead is the number of files that the agent read in this attempt, as far as tools tell.
	// +optional
	FilesRead int64 `json:"filesRead,omitempty"`
	// contracts are the names of the contracts whose locks the Feature holds.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Contracts []string `json:"contracts,omitempty"`
}

// SaluteUnit is who is working.
type SaluteUnit struct {
	// role is the role of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role,omitempty"`
	// runtime is the runtime that drives the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Runtime string `json:"runtime,omitempty"`
}

// SaluteTime is how long the agent has been at work, in turns of the conversation.
type SaluteTime struct {
	// turnsSinceProgress is the number of turns that changed nothing.
	// +optional
	TurnsSinceProgress int64 `json:"turnsSinceProgress,omitempty"`
	// contextTurnsRemaining is an estimate of how many more turns fit into the model's window.
	// +optional
	ContextTurnsRemaining int64 `json:"contextTurnsRemaining,omitempty"`
}

// SaluteEnvironment is what the agent works with.
type SaluteEnvironment struct {
	// model is the model that answered last.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Model string `json:"model,omitempty"`
	// contextPercent is the used share of the model's window, in percent. It is absent if contextTokensMax is absent.
	// +optional
	ContextPercent int32 `json:"contextPercent,omitempty"`
	// contextTokens is the number of tokens of the model's window that the conversation uses.
	// +optional
	ContextTokens int64 `json:"contextTokens,omitempty"`
	// contextTokensMax is the size of the model's window in tokens. It is absent if the gateway's configuration has no contextWindow for the model. The watchdog does not see the condition ContextPressure then.
	// +optional
	ContextTokensMax int64 `json:"contextTokensMax,omitempty"`
	// toolFailuresInARow is how many of the last tool calls failed, one after the other.
	// +optional
	ToolFailuresInARow int64 `json:"toolFailuresInARow,omitempty"`
	// toolFailures is the number of tool calls that failed in this attempt.
	// +optional
	ToolFailures int64 `json:"toolFailures,omitempty"`
}

// Usage of models.
type Usage struct {
	// calls is the number of model calls that have ended.
	// +optional
	Calls int64 `json:"calls,omitempty"`
	// inputTokens is the number of input tokens, including cachedInputTokens.
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`
	// cachedInputTokens is the number of input tokens that the provider had kept.
	// +optional
	CachedInputTokens int64 `json:"cachedInputTokens,omitempty"`
	// outputTokens is the number of output tokens.
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// cost is the cost in the gateway's currency, a decimal number.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Cost string `json:"cost,omitempty"`
}
