// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Asking says whether an agent may ask users.
type Asking string

// Values of Asking. The zero value of an older record is AskWait.
const (
	// AskOff gives the agent no tool to ask.
	AskOff Asking = "Off"
	// AskGuess has the agent continue at once with its best guess. Users see the question.
	AskGuess Asking = "Guess"
	// AskWait has the agent wait for the answer.
	AskWait Asking = "Wait"
)

// QuestionRules are the values of Questions that a source sets.
type QuestionRules struct {
	Asking    Asking
	Timeout   *time.Duration
	ParkAfter *time.Duration
}

// Questions of agents to users.
type Questions struct {
	// Asking says whether an agent may ask.
	Asking Asking `json:"asking,omitempty"`
	// Timeout is how long a question waits before the agent guesses; 0 for no limit, as in an older record.
	Timeout time.Duration `json:"timeout,omitempty"`
	// ParkAfter is how long a question waits before the agent's pod ends; 0 for never.
	ParkAfter time.Duration `json:"parkAfter,omitempty"`
}

// Guess says whether an agent that asked at the given time has to continue with its best guess now: the policy does not let it wait, or nobody
// has answered in time. A zero time is that of a question in an older record, which waits.
func (q Questions) Guess(asked, now time.Time) bool {
	return q.Asking != AskWait && q.Asking != "" || q.Timeout > 0 && !asked.IsZero() && !now.Before(asked.Add(q.Timeout))
}

// WithoutWaiting are the rules for an agent that may ask, and never waits for the answer.
func (q Questions) WithoutWaiting() Questions {
	if q.Asking == AskWait || q.Asking == "" {
		q.Asking = AskGuess
	}
	return q
}

// Built-in times of a question. A user who sees it the next morning still answers in time. A pod that waits for ten minutes has cost more than its
// next start.
const (
	builtinQuestionTimeout = 24 * time.Hour
	builtinParkAfter       = 10 * time.Minute
)

func questionRows() []Row {
	type r = Rules
	type e = Effective
	return []Row{
		choice("agents.questions", "Whether an agent can ask users. Wait has it wait for the answer. Guess has it continue at once with its best guess; users see the question, and the agent gets an answer that comes later. Off gives it no tool to ask.",
			func(x *r) *Asking { return &x.Questions.Asking }, func(x *e) *Asking { return &x.Questions.Asking }, AskWait, AskOff, AskGuess, AskWait),
		span("agents.questionTimeout", "How long a question waits for its answer. After that the agent continues with its best guess.",
			func(x *r) **duration { return &x.Questions.Timeout }, func(x *e) *duration { return &x.Questions.Timeout }, builtinQuestionTimeout, smaller, from[duration](time.Minute, endless)),
		span("agents.parkAfter", "How long a question waits before the pod of its agent ends. The answer then starts the next attempt in the agent's session. 0 never ends it.",
			func(x *r) **duration { return &x.Questions.ParkAfter }, func(x *e) *duration { return &x.Questions.ParkAfter }, builtinParkAfter, smaller, from[duration](0, endless)),
	}
}
