// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// MaxAnomalies of a report: one of each type.
const MaxAnomalies = 8

// Conversation is the watchdog's view of an agent's conversation with its models.
type Conversation struct {
	// Turn of the conversation about the task, from 1.
	Turn int64 `json:"turn"`
	// Anomalies that are not over, the most urgent first.
	Anomalies []Anomaly `json:"anomalies,omitempty"`
	// Pace says how far the work is from its plan; it is empty if the work follows the plan. Health is the watchdog's summary of the conversation.
	Pace   string `json:"pace,omitempty"`
	Health string `json:"health,omitempty"`
	// Tool is the last tool that the agent called, and Iterations the number of consecutive calls that equal it.
	Tool       string `json:"tool,omitempty"`
	Iterations int64  `json:"iterations,omitempty"`
	// Step is what that call was about: the file that it read or changed, if the tool names it.
	Step string `json:"step,omitempty"`
	// Awaits is the background command that the agent waits for after its model answered; empty if it waits for none.
	Awaits string `json:"awaits,omitempty"`
	// FilesRead is the number of different files that tools read.
	FilesRead int64 `json:"filesRead,omitempty"`
	// TurnsSinceProgress is the number of turns since the last progress. ContextTurns is an estimate of the turns that still fit into the
	// model's context window.
	TurnsSinceProgress int64 `json:"turnsSinceProgress,omitempty"`
	ContextTurns       int64 `json:"contextTurns,omitempty"`
	// Model is the model that answered last, and ContextTokens the number of tokens in use of its context Window. Window is 0 if it is unknown.
	Model         string `json:"model,omitempty"`
	ContextTokens int64  `json:"contextTokens,omitempty"`
	Window        int64  `json:"window,omitempty"`
	// ToolFailures is the number of failed tool calls in this task, and ToolFailuresInARow the number of the latest ones without a success between.
	ToolFailures       int64 `json:"toolFailures,omitempty"`
	ToolFailuresInARow int64 `json:"toolFailuresInARow,omitempty"`
	// FixedInTime counts the violations since the Feature began that the agent fixed before a checkpoint found them.
	FixedInTime int64 `json:"fixedInTime,omitempty"`
}

// Levels of Health and of Pace.
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
	// Turn is the turn in which the watchdog first saw it, and Since the time.
	Turn  int64     `json:"turn"`
	Since time.Time `json:"since"`
	// Message has the evidence, and says what the watchdog did about it.
	Message string `json:"message"`
	// Cause is CauseProvider, or empty if the agent itself is the cause.
	Cause string `json:"cause,omitempty"`
}

// CauseProvider says that an anomaly is not the agent's fault: its model calls fail with errors of the provider.
const CauseProvider = "Provider"
