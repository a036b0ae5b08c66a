// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

// Violations tells of rules that a checkpoint found broken.
type Violations struct {
	Type         string      `json:"type"`
	Severity     string      `json:"severity"`
	CheckpointID string      `json:"checkpoint_id"`
	Timestamp    time.Time   `json:"timestamp"`
	Violations   []Violation `json:"violations"`
	FilesChanged []string    `json:"files_changed"`
	ActionTaken  string      `json:"action_taken"`
}

// Broken tells of what a judgement has to say to the agent. Checkpoint is the name of the checkpoint; wentBack: the
// workspace, or a part of it, was restored because of it.
func Broken(checkpoint string, at time.Time, j judge.Judgement, changes []judge.Change, wentBack bool) Violations {
	n := Violations{
		Type: "checkpoint_violation", Severity: strings.ToLower(string(j.Severity)), CheckpointID: checkpoint, Timestamp: at.UTC(),
		Violations: violations(j.Told()), FilesChanged: Files(changes), ActionTaken: none,
	}
	if wentBack {
		n.ActionTaken = reverted
	}
	return n
}

// Warning tells of what the next checkpoint will object to.
type Warning struct {
	Type        string      `json:"type"`
	Severity    string      `json:"severity"`
	Timestamp   time.Time   `json:"timestamp"`
	Violations  []Violation `json:"violations"`
	ActionTaken string      `json:"action_taken"`
}

// Ahead warns of violations, of which there is one at least; the first is the worst.
func Ahead(list []judge.Violation, at time.Time) Warning {
	return Warning{
		Type: "violation_warning", Severity: strings.ToLower(string(list[0].Severity)), Timestamp: at.UTC(),
		Violations: violations(list), ActionTaken: none,
	}
}
