// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker decides what the runtime worker says to a model, and what it does after an answer.
package worker

import (
	"encoding/json"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
)

// Names of tools whose meaning the worker knows; it offers the others to the model as they come.
const (
	ToolContext  = "feature_get_context"
	ToolQuestion = "ask_user"
	ToolComplete = "task_complete"
)

// Instructions for every model; the tool server's own instructions follow them.
const Instructions = `You are a software engineer and work on one task in a Git repository. Nobody watches you. Everything is done by calling tools: there is no
shell, and text that you write is read by nobody. Read before you change something, make small changes, look at what was refused and why, and
call task_complete when the task is done.`

const (
	// reminder is the text for a model that has called no tool.
	reminder = "You have called no tool. Continue with the task by calling tools, ask a user with ask_user, or call task_complete if the task is done."
	// cutReminder is the text for a model whose answer was cut off.
	cutReminder = "Your answer was cut off because it was too long. Go on in smaller steps: call one tool at a time, and send smaller patches."
	// broken is the result of a call that cannot be made.
	broken = "there is no such tool, or the arguments are not a JSON object, so nothing was called. If they were cut off, send less at once, such as a smaller patch"
	// maxResult bounds what a model gets of one call, in bytes: more than any page of a tool has.
	maxResult = 256 << 10
	// maxQuoted bounds what is quoted of an answer, in bytes.
	maxQuoted = 500
)

// Bounds of a task.
type Bounds struct {
	// Turns are the most answers of the model.
	Turns int
	// Reminders is how many answers in a row may call no tool: after each the model is reminded of its tools.
	Reminders int
	// Window of the model and MaxOutput of one answer, in tokens.
	Window, MaxOutput int64
}

// DefaultBounds apply without other values. The window is the gateway's default for a model without a configured one. Current models with
// tools can write an answer of 8,192 tokens (https://docs.claude.com/en/docs/about-claude/models/overview).
var DefaultBounds = Bounds{Turns: 250, Reminders: 3, Window: 200_000, MaxOutput: 8192}

// Loop of a task. Make it with NewLoop.
type Loop struct {
	History History

	bounds Bounds
	turns  int
	silent int
	// perToken are the bytes of a request for a token of the model, by what the provider has counted last.
	perToken float64
}

// NewLoop begins a task with the first messages for the model.
func NewLoop(b Bounds, task string) *Loop {
	// Code has about three bytes for a token.
	l := &Loop{bounds: b, perToken: 3}
	l.History.Add(speech.Message{Text: task})
	return l
}

// Room is how many bytes a request may have.
func (l *Loop) Room() int {
	return int(float64(max(l.bounds.Window-l.bounds.MaxOutput, l.bounds.Window/2)) * l.perToken)
}

// Next is what follows an answer: tool calls, or a text, or the end of the task for a reason.
type Next struct {
	Calls []speech.Call
	Say   string
	// Fail says why the task cannot be done.
	Fail string
}

// Hear an answer to a request of the given size in bytes, and say what follows.
func (l *Loop) Hear(a speech.Answer, sent int) Next {
	if tokens := a.Usage.Sent(); a.Counted && tokens > 0 {
		l.perToken = min(max(float64(sent)/float64(tokens), 1), 6)
	}
	l.turns++
	for i := range a.Message.Calls { // a result names its call, and no other of the conversation
		if c := &a.Message.Calls[i]; c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", l.turns, i)
		}
	}
	l.History.Add(a.Message)
	if l.turns > l.bounds.Turns || l.turns == l.bounds.Turns && !completes(a.Message) {
		return Next{Fail: fmt.Sprintf("the model has answered %d times and the task is not done: split the task, or raise the bound with spec.agent.args: [--max-turns=%d]",
			l.turns, 2*l.bounds.Turns)}
	}
	if len(a.Message.Calls) > 0 {
		l.silent = 0
		return Next{Calls: a.Message.Calls}
	}
	if l.silent++; l.silent > l.bounds.Reminders {
		return Next{Fail: fmt.Sprintf("the model has called no tool in %d answers in a row; its last one (%s) begins: %q", l.silent, stopped(a), plain.CutBytes(a.Message.Text, maxQuoted))}
	}
	if a.Stop == conversation.StopLength || a.Cut {
		return Next{Say: cutReminder}
	}
	return Next{Say: reminder}
}

func completes(m speech.Message) bool {
	for _, c := range m.Calls {
		if c.Name == ToolComplete && !c.Broken {
			return true
		}
	}
	return false
}

func stopped(a speech.Answer) string {
	if a.Stop == conversation.StopNone {
		return "no reason given"
	}
	return "ended by " + string(a.Stop)
}

// Refuse returns the refusal of an invalid call; false for a valid one.
func Refuse(c speech.Call) (speech.Result, bool) {
	if !c.Broken {
		return speech.Result{}, false
	}
	return speech.Result{ID: c.ID, Text: broken, Failed: true}, true
}

// early answers a call of task_complete that comes with calls that did not succeed: the model has not seen that yet.
const early = "An earlier call of this answer was refused or failed, so the task is not completed. Look at its result, and call task_complete again when the task is done."

// Complete says whether a call completes the task after the results of the same answer; if not, result is the text for the model.
func Complete(c speech.Call, before []speech.Result) (result speech.Result, complete bool) {
	for _, r := range before {
		var answer struct{ Status string }
		refused := json.Unmarshal([]byte(r.Text), &answer) == nil && answer.Status == refusedPatch
		if r.Failed || refused {
			return speech.Result{ID: c.ID, Text: early, Failed: true}, false
		}
	}
	return speech.Result{}, true
}

// refusedPatch is the status of a patch that was checked and not applied.
const refusedPatch = "refused"

// Share is how many bytes of each result a model gets, given the number of calls in one answer. All of them take a quarter of the room: the
// results of the last two answers are never dropped, and other content needs room too.
func (l *Loop) Share(calls int) int { return min(maxResult, l.Room()/4/max(calls, 1)) }

// Answered is the result of a call, cut to the model's share.
func Answered(c speech.Call, text string, failed bool, most int) speech.Result {
	if len(text) > most {
		text = plain.CutBytes(text, most) + fmt.Sprintf("\n(cut: the tool has answered %d bytes; ask for less at once)", len(text))
	}
	return speech.Result{ID: c.ID, Text: text, Failed: failed}
}
