// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Violations reports rules that a checkpoint found broken.
type Violations struct {
	Type         string      `json:"type"`
	Severity     string      `json:"severity"`
	CheckpointID string      `json:"checkpoint_id"`
	Timestamp    time.Time   `json:"timestamp"`
	Violations   []Violation `json:"violations"`
	FilesChanged []string    `json:"files_changed"`
	ActionTaken  string      `json:"action_taken"`
	// FilesReverted went back because of this, and ChangesKept stay.
	FilesReverted []string `json:"files_reverted,omitempty"`
	ChangesKept   int      `json:"changes_kept,omitempty"`
	// RequiresAcknowledgment asks the agent for a line violation_ack.
	RequiresAcknowledgment bool `json:"requires_acknowledgment,omitempty"`

	// told are all of the violations, and back what went back; nil for nothing.
	told []protocol.Violation
	back *Back
}

// Broken reports the violations of a checkpoint to the agent, with the name of the checkpoint. Back is what went back because of it, or nil
// if the workspace stays as it is.
func Broken(checkpoint string, at time.Time, j judge.Judgement, changes []judge.Change, back *Back) Violations {
	n := Violations{
		Type: "checkpoint_violation", Severity: strings.ToLower(string(j.Severity)), CheckpointID: checkpoint, Timestamp: at.UTC(),
		Violations: violations(j.Told()), FilesChanged: Files(changes), ActionTaken: none, told: j.Told(), back: back,
	}
	n.RequiresAcknowledgment = len(Critical(n.told)) > 0
	if back != nil {
		n.ActionTaken, n.ChangesKept = reverted, back.Kept
		for _, path := range back.Paths[:min(len(back.Paths), MaxFiles)] {
			n.FilesReverted = append(n.FilesReverted, Path(path))
		}
	}
	return n
}

// Correction tells an agent that has ended its task what keeps its work from delivery; empty if nothing does. It gets the name of the
// checkpoint that found it, and in back what went back because of it; nil for nothing.
func Correction(checkpoint string, list []protocol.Violation, back *Back) string {
	rules := Critical(list)
	list = slices.DeleteFunc(slices.Clone(list), func(v protocol.Violation) bool { return v.Severity != policy.Error && v.Severity != policy.Critical })
	if len(list) == 0 {
		return ""
	}
	text := fmt.Sprintf("Your work is not delivered yet: checkpoint %s breaks rules.\n%s\n\n", checkpoint, lines(points(list), 0))
	if back != nil {
		text += back.text(checkpoint) + " Then end again. If you cannot do the task within the rules, say why: the supervisor then delivers nothing."
	} else {
		text += "Fix this and end again. Leave the rest of your work as it is."
	}
	if len(rules) > 0 {
		text += "\n" + acknowledge(rules)
	}
	return text
}

// Undone tells an agent that has ended its task that its work went back and that it has done nothing instead. It gets the name of the
// checkpoint that reverted it, and its objection.
func Undone(checkpoint, objection string) string {
	return fmt.Sprintf("Your work went back at checkpoint %s, and you did no other work: there is nothing to deliver. What was wrong: %s. "+
		"Do the work again without breaking that rule, and end again. If you cannot do the task within the rules, say why: the supervisor then delivers nothing.",
		checkpoint, trimmed(objection, 4*maxText))
}

// Warning warns of what the next checkpoint will object to.
type Warning struct {
	Type        string      `json:"type"`
	Severity    string      `json:"severity"`
	Timestamp   time.Time   `json:"timestamp"`
	Violations  []Violation `json:"violations"`
	ActionTaken string      `json:"action_taken"`
}

// Ahead warns of violations, of which there is one at least; the first is the worst.
func Ahead(list []protocol.Violation, at time.Time) Warning {
	return Warning{
		Type: "violation_warning", Severity: strings.ToLower(string(list[0].Severity)), Timestamp: at.UTC(),
		Violations: violations(list), ActionTaken: none,
	}
}
