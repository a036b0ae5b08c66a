// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// maxStep is how much of a path is remembered for people, in bytes.
	maxStep = 256
	// maxFiles is how many files it distinguishes.
	maxFiles = 4096
)

// Seen are the figures of a status report.
type Seen struct {
	Tool         string                `json:"tool,omitempty"`
	Step         string                `json:"step,omitempty"`
	Call         conversation.Digest   `json:"call"`
	Iterations   int64                 `json:"iterations,omitempty"`
	Failures     int64                 `json:"failures,omitempty"`
	InARow       int64                 `json:"inARow,omitempty"`
	Files        []conversation.Digest `json:"files,omitempty"`
	Model        string                `json:"model,omitempty"`
	Tokens       int64                 `json:"tokens,omitempty"`
	Window       int64                 `json:"window,omitempty"`
	TokensBefore int64                 `json:"tokensBefore,omitempty"`
}

// figures of a turn.
func (s *State) figures(turn conversation.Turn) {
	if turn.Again {
		return
	}
	if turn.Kind == conversation.KindMain {
		s.Turns++
	}
	s.Anomalies.RunTurn = max(s.Turns, 1) // an agent that works for the main one may be heard first
	for _, step := range turn.Steps {
		s.Seen.step(step)
	}
}

func (s *Seen) step(step conversation.Step) {
	call := conversation.Sum([]byte(step.Call.Name), step.Call.Arguments.Digest[:])
	if call != s.Call {
		s.Iterations = 0
	}
	s.Tool, s.Call, s.Iterations = step.Call.Name, call, s.Iterations+1
	path := step.Call.Reads()
	s.Step = plain.CutBytes(cmp.Or(path, step.Call.Edit.Path), maxStep)
	if step.Failure != conversation.FailureNone {
		s.Failures, s.InARow = s.Failures+1, s.InARow+1
		return
	}
	s.InARow = 0
	if path != "" && len(s.Files) < maxFiles {
		if at, known := slices.BinarySearchFunc(s.Files, conversation.Sum([]byte(path)), conversation.Digest.Compare); !known {
			s.Files = slices.Insert(s.Files, at, conversation.Sum([]byte(path)))
		}
	}
}

// answered takes what an answer says of the model. How full its window is counts for the main thread.
func (s *State) answered(thread int, a *conversation.Answer, window int64) {
	if !s.main(thread) {
		return
	}
	if a.Model != "" {
		s.Seen.Model = a.Model
	}
	if a.Counted {
		s.Seen.TokensBefore, s.Seen.Tokens = s.Seen.Tokens, a.Usage.Total()
	}
	if window > 0 {
		s.Seen.Window = window
	}
}
