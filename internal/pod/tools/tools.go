// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tools serves the watchdog's tools over MCP. By them an agent asks users, settles their directives and says when it is done. One that
// cannot write to its workspace also reads it here, and sends patches. The Backend decides what a tool does; this package has the protocol, the bounds and the reading of
// immutable objects.
package tools

import (
	"context"
	"errors"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// ErrAway says that the result of a call is unknown until the supervisor has restarted. It is not a result of the tool: a client that keeps
// calls until they are answered makes the same call again, and others show the text to the model.
var ErrAway = errors.New("the supervisor is starting again, and the result of this call is not known yet: make the same call again, with the same ids")

// Backend is the watchdog's side of the tools. Its methods are safe for concurrent use. The agent sees an error, which says what is
// wrong and what to do. ErrAway is wrapped if the call has no result.
type Backend interface {
	// Context of the work.
	Context() Context
	// Tree that the workspace holds now; it is immutable.
	Tree() (*objects.Tree, error)
	// Apply checks a patch and applies it to the workspace if it is valid. A refused patch is not an error.
	Apply(ctx context.Context, operation, patch string) (PatchResult, error)
	// Asks says whether the agent may ask users in its task.
	Asks() bool
	// Ask a question, and wait a while for the answer.
	Ask(ctx context.Context, q protocol.Question) (Answer, error)
	// Complete says that the task is done.
	Complete(ctx context.Context, summary string) error
}

// Context describes an agent's work.
type Context struct {
	Feature      string `json:"feature"`
	Task         string `json:"task"`
	Prompt       string `json:"prompt"`
	Instructions string `json:"instructions,omitempty"`
	// Tasks of the plan with their states.
	Tasks []protocol.TaskStatus `json:"tasks"`
	// AllowedAreas and the other bounds of the plan, as gitignore-style patterns; empty allows everything.
	AllowedAreas   []string      `json:"allowed_areas,omitempty"`
	PlannedAreas   []string      `json:"planned_areas,omitempty"`
	ForbiddenAreas []string      `json:"forbidden_areas,omitempty"`
	PlannedFiles   *PlannedFiles `json:"planned_files,omitempty"`
	// ProtectedPaths must not change.
	ProtectedPaths []string `json:"protected_paths,omitempty"`
	// Base is the commit that the work started from, Head the last valid one.
	Base string `json:"base"`
	Head string `json:"head"`
	// Answers of users to questions.
	Answers []protocol.Answer `json:"answers,omitempty"`
	// Directives of users that the agent must address, the most urgent first.
	Directives []Directive `json:"directives,omitempty"`
}

// PlannedFiles is the whole set of planned files.
type PlannedFiles struct {
	Create []string `json:"create,omitempty"`
	Modify []string `json:"modify,omitempty"`
	Delete []string `json:"delete,omitempty"`
}

// What can become of a patch.
const (
	Applied = "applied"
	Refused = "refused"
)

// PatchResult is the result of a patch.
type PatchResult struct {
	OperationID string `json:"operation_id"`
	// Status is applied or refused; a refused patch changed nothing.
	Status string `json:"status"`
	// Message for users and models.
	Message string `json:"message"`
	// Checkpoint that records an applied patch.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Violations of rules, the worst first; an applied patch may have violations that only warn.
	Violations []Violation `json:"violations,omitempty"`
	// FilesChanged by the patch.
	FilesChanged []string `json:"files_changed,omitempty"`
}

// Violation is one rule broken by one path.
type Violation struct {
	Rule       string `json:"rule"`
	Path       string `json:"path,omitempty"`
	Severity   string `json:"severity"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
}

// What can become of a question.
const (
	Answered = "answered"
	Waiting  = "pending"
	// Guess: nobody answers now, and the agent continues with its best guess.
	Guess = "guess"
)

// Answer to a question.
type Answer struct {
	QuestionID string `json:"question_id"`
	// Status is answered, guess, or pending: the agent then asks the same question again with the same id.
	Status string `json:"status"`
	Answer string `json:"answer,omitempty"`
	// Message says what to do without an answer.
	Message string `json:"message,omitempty"`
}
