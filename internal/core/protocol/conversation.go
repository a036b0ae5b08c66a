// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// MaxAnomalies of a report: one of each type.
const MaxAnomalies = 8

// Conversation is how an agent's conversation with its models goes, as its watchdog sees it.
type Conversation struct {
	// Turn of the conversation about the task, from 1.
	Turn int64 `json:"turn"`
	// Anomalies that are not over, the most urgent first.
	Anomalies []Anomaly `json:"anomalies,omitempty"`
	// Pace is how far the work has fallen off its plan; empty for not at all. Health is what the watchdog makes of all of it.
	Pace   string `json:"pace,omitempty"`
	Health string `json:"health,omitempty"`
	// Tool that was called last, and Iterations of the same call in a row.
	Tool       string `json:"tool,omitempty"`
	Iterations int64  `json:"iterations,omitempty"`
	// Step is what that call was about: the file that it read or changed, where tools say so.
	Step string `json:"step,omitempty"`
	// Awaits is the background command that the agent waits for since its model has answered; empty where it does not.
	Awaits string `json:"awaits,omitempty"`
	// FilesRead are different files that tools have read.
	FilesRead int64 `json:"filesRead,omitempty"`
	// TurnsSinceProgress, and ContextTurns that fit into what is left of the model's window.
	TurnsSinceProgress int64 `json:"turnsSinceProgress,omitempty"`
	ContextTurns       int64 `json:"contextTurns,omitempty"`
	// Model that answered last, and how many tokens of its Window are used; Window is 0 where nobody knows it.
	Model         string `json:"model,omitempty"`
	ContextTokens int64  `json:"contextTokens,omitempty"`
	Window        int64  `json:"window,omitempty"`
	// ToolFailures of this task, and those in a row at its end.
	ToolFailures       int64 `json:"toolFailures,omitempty"`
	ToolFailuresInARow int64 `json:"toolFailuresInARow,omitempty"`
	// FixedInTime are the broken rules that the agent was to be warned of, and that were fixed before a checkpoint saw them, since the Feature began.
	FixedInTime int64 `json:"fixedInTime,omitempty"`
}

// Levels of health, and of how far the work has fallen off its plan.
const (
	HealthNominal  = "Nominal"
	HealthDegraded = "Degraded"
	HealthCritical = "Critical"

	PacePrimary    = "Primary"
	PaceAlternate  = "Alternate"
	PaceContingent = "Contingent"
	PaceEmergency  = "Emergency"
)

// Anomaly of an agent that is stuck or in trouble.
type Anomaly struct {
	// Type is the condition that it sets.
	Type string `json:"type"`
	// Turn that it was seen in first, and Since when.
	Turn  int64     `json:"turn"`
	Since time.Time `json:"since"`
	// Message has the evidence, and what was done about it.
	Message string `json:"message"`
	// Cause is CauseProvider; empty where it is the agent itself.
	Cause string `json:"cause,omitempty"`
}

// CauseProvider of an anomaly: the agent's calls of models are answered with errors that are not its own.
const CauseProvider = "Provider"
