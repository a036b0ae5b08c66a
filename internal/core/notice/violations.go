// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/clip"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
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

const (
	// maxCorrected bounds the violations that a correction lists: an agent fixes a few at a time.
	maxCorrected = 8
	// maxPart bounds each text in it, in bytes.
	maxPart = 512
)

// Correction tells an agent in words that has ended its task what keeps its work from being delivered; empty where nothing does.
// Checkpoint is the name of the one that found it. Names are quoted: they are the agent's own words, and may say anything.
func Correction(checkpoint string, list []judge.Violation) string {
	list = slices.DeleteFunc(slices.Clone(list), func(v judge.Violation) bool { return v.Severity != policy.Error && v.Severity != policy.Critical })
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Your work is not delivered yet: checkpoint %s breaks rules.\n", checkpoint)
	for _, v := range list[:min(len(list), maxCorrected)] {
		b.WriteString("\n- ")
		if v.Path != "" {
			b.WriteString(strconv.QuoteToASCII(clip.Bytes(v.Path, maxPart)) + ", ")
		}
		fmt.Fprintf(&b, "rule %s: %s.", v.Rule, strings.TrimRight(clip.Bytes(v.Message, maxPart), "."))
		if v.Suggestion != "" {
			fmt.Fprintf(&b, " To fix it: %s.", strings.TrimRight(clip.Bytes(v.Suggestion, maxPart), "."))
		}
	}
	if more := len(list) - maxCorrected; more > 0 {
		fmt.Fprintf(&b, "\n- and %s.", plural(more, "more violation"))
	}
	b.WriteString("\n\nFix this and end again. Leave the rest of your work as it is.")
	return b.String()
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
