// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
)

// Bounds of what an agent is told: a pipe holds 64 KiB, and nobody waits for the agent to read.
const (
	maxToldViolations = 20
	maxToldFiles      = 100
	tellWithin        = 5 * time.Second
	// maxToldKept bounds what the journal keeps of it, in bytes.
	maxToldKept = 4 << 10
)

// violationNotice is the line on an agent's standard input that tells of broken rules.
type violationNotice struct {
	Type         string            `json:"type"`
	Severity     string            `json:"severity"`
	CheckpointID string            `json:"checkpoint_id"`
	Timestamp    time.Time         `json:"timestamp"`
	Violations   []violationToTell `json:"violations"`
	FilesChanged []string          `json:"files_changed"`
	ActionTaken  string            `json:"action_taken"`
}

// rollbackNotice is the line on an agent's standard input that tells that files went back because a person asked.
type rollbackNotice struct {
	Type string `json:"type"`
	// RequestID and Kind are those of the request.
	RequestID string `json:"request_id"`
	Kind      string `json:"kind"`
	// CheckpointID keeps the state before; RestoredFrom is the one gone back to, absent for the last valid state.
	CheckpointID  string    `json:"checkpoint_id"`
	RestoredFrom  string    `json:"restored_from,omitempty"`
	Timestamp     time.Time `json:"timestamp"`
	FilesReverted []string  `json:"files_reverted"`
	ChangesKept   int       `json:"changes_kept"`
	ActionTaken   string    `json:"action_taken"`
	Message       string    `json:"message"`
}

type violationToTell struct {
	File       string `json:"file"`
	Constraint string `json:"constraint"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
}

// tell lets the agent know what it has broken and how to fix it; once, until something else is wrong. What is not worth
// telling is logged.
func (r *run) tell(ctx context.Context, o occasion, t taken) {
	if t.intent == nil {
		return
	}
	told := t.judgement.Told()
	if r.noted != t.intent.Judgement {
		r.noted = t.intent.Judgement
		r.logUntold(ctx, t, t.judgement.Violations[len(told):])
	}
	now := digest(judge.Judgement{Violations: told})
	if now == r.told {
		return
	}
	r.told = now
	if len(told) == 0 {
		return
	}
	r.input(ctx, t.intent.Sequence, noticeOf(o.orders.Feature, t))
}

// logUntold logs violations that the agent is not told of, as many as a Checkpoint lists.
func (r *run) logUntold(ctx context.Context, t taken, untold []judge.Violation) {
	for _, v := range untold[:min(len(untold), maxViolations)] {
		r.Log.InfoContext(ctx, "A rule is broken that is for information only", "checkpoint", t.intent.Sequence,
			"rule", v.Rule, "path", judge.Escape(v.Path), "message", v.Message)
	}
}

// input sends the agent a notice about a checkpoint, one line, and journals that it did.
func (r *run) input(ctx context.Context, checkpoint int64, notice any) {
	line, err := json.Marshal(notice)
	if err != nil {
		r.Log.WarnContext(ctx, "The agent is not told", "error", err.Error())
		return
	}
	short, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	delivered, err := r.agent.Input(short, string(line))
	if err != nil {
		r.Log.WarnContext(ctx, "The agent is not told", "error", err.Error())
	} else {
		r.Log.InfoContext(ctx, "Agent is told", "checkpoint", checkpoint, "delivered", delivered)
	}
	told := journal.Told{Checkpoint: checkpoint, Delivered: delivered, Text: clip(string(line), maxToldKept)}
	if err := r.book.Note(journal.Record{Told: &told}); err != nil {
		r.Log.WarnContext(ctx, "What the agent was told is not journaled", "error", err.Error())
	}
}

func noticeOf(f contract.FeatureRef, t taken) violationNotice {
	n := violationNotice{
		Type: "checkpoint_violation", Severity: strings.ToLower(string(t.judgement.Severity)),
		CheckpointID: naming.Checkpoint(f.Name, t.intent.Sequence), Timestamp: t.snapshot.At.UTC(),
		Violations: []violationToTell{}, FilesChanged: []string{}, ActionTaken: "none",
	}
	if t.intent.Restore != "" {
		n.ActionTaken = "reverted"
	}
	told := t.judgement.Told()
	for _, v := range told[:min(len(told), maxToldViolations)] {
		n.Violations = append(n.Violations, toTell(v))
	}
	for _, c := range t.snapshot.Changes[:min(len(t.snapshot.Changes), maxToldFiles)] {
		n.FilesChanged = append(n.FilesChanged, toldPath(c.Path))
	}
	return n
}

func toTell(v judge.Violation) violationToTell {
	return violationToTell{File: toldPath(v.Path), Constraint: v.Rule, Message: v.Message, Suggestion: v.Suggestion}
}

// toldPath is a path as it is where it is text; JSON has no other.
func toldPath(path string) string {
	if !json.Valid([]byte(`"`+path+`"`)) || path != strings.ToValidUTF8(path, "") {
		return judge.Escape(path)
	}
	return path
}
