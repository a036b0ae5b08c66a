// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
)

// Task is the task of an agent at its start.
type Task struct {
	// Command and Args as in spec.agent. A runtime that knows its own program needs no command.
	Command, Args []string
	// Home is the agent's home directory. It outlives attempts, so that a runtime finds its session there again.
	Home string
	// Env of the agent: its own, and the variables about the task that every runtime gets.
	Env []string
	// Prompt of the Feature, and Instructions of the task; one of them may be empty.
	Prompt, Instructions string
	// Model of the policy for the role primary; empty if there is none. This model answers whatever model an agent names: an agent that knows
	// its name makes better use of it.
	Model string
	// Window is the context window of the model in tokens; 0 if it is unknown.
	Window int64
	// Models is the URL of the watchdog's server of models: that of a dialect is below its prefix.
	Models string
	// Tools is the URL of the watchdog's tools; empty if the agent has none of them.
	Tools string
	// ReadOnly: the agent cannot write to the workspace, and changes files by Tools.
	ReadOnly bool
	// NoQuestions: these tools have none to ask users.
	NoQuestions bool
	// Reply is the text about the question that an interrupted agent has asked; may be empty.
	Reply string
	// Interrupted: an agent ended in the middle of the task, for a reason that is not its fault.
	Interrupted bool
	// Facts for the agent in addition to Prompt and Instructions, such as where it may write.
	Facts instructions.Facts
	// Remains says which files went back if the agent was interrupted; may be empty.
	Remains string
	// Before is the text for an agent before its task, if the task starts again from the beginning because another agent was in trouble with
	// it; empty otherwise.
	Before string
	// Correction is the text for an agent that ended its task with work that is not valid; empty otherwise.
	Correction string
}

// interruption is the text for an agent that ended in the middle of its task. It may have no session to continue, so that the task follows.
const interruption = "You were interrupted in the middle of this task, and continue in another container. The workspace is as the last checkpoint has it: " +
	"look at it before you continue."

// ToolServer is the name that agents know the watchdog's tools by.
const ToolServer = "tidewaiter"

// throughTools is the text for an agent that cannot write: the tools that it has of its own do not work.
func (t Task) throughTools() string {
	ask := ", ask_user asks a user"
	if t.NoQuestions {
		ask = ""
	}
	return "The workspace is read-only: you cannot change files yourself. Call the tools of the MCP server " + ToolServer + ": repo_apply_patch changes files, " +
		"repo_read_file and repo_search read them, feature_get_context says what may change" + ask + ". When the task is done, call task_complete, and then end."
}

// toolPatience is how long an agent waits for one of these tools, in seconds: the check of a patch may take minutes.
const toolPatience = 300

// Goes says whether the agent continues a session.
func (t Task) Goes() bool { return t.Interrupted || t.Correction != "" }

// Text is the task for an agent that takes a single text.
func (t Task) Text() string {
	task := t.Facts.Text(strings.TrimSpace(t.Prompt + "\n\n" + t.Instructions))
	if t.ReadOnly {
		task += "\n\n" + t.throughTools()
	}
	switch {
	case t.Correction != "":
		return t.Correction
	case t.Interrupted:
		text := strings.TrimSuffix(interruption+" "+t.Remains, " ") + " What the task is:\n\n" + task
		return strings.TrimPrefix(t.Reply+"\n\n"+text, "\n\n")
	case t.Before != "":
		return t.Before + " What the task is:\n\n" + task
	}
	return task
}

// context of a task for an agent that finds its bounds with its instructions, and gets directives by its conversation or by lines.
func (t Task) context() string {
	f := t.Facts
	f.Bounds, f.Directives = "", nil
	return f.Before()
}

// Apart is what an agent reads that takes no single text: the context of its task, prompt, instructions and bounds, each in a variable of its own.
func (t Task) Apart() string {
	work := instructions.Facts{Bounds: t.Facts.Bounds}.Text(strings.TrimSpace(t.Prompt + "\n\n" + t.Instructions))
	return strings.TrimSpace(t.context() + "\n\n" + work)
}

// Launch is how a process is started.
type Launch struct {
	Argv []string
	// Env as NAME=value; a later one counts.
	Env []string
	// Input is all of its standard input; nil leaves it open for lines.
	Input *string
	// Files are written below HOME before the start, for settings that no flag and no variable carries: the text of each by its path. The agent can change
	// them, and finds them new at its next start. Nothing in them is secret.
	Files map[string]string
}

// Adapter drives a runtime.
type Adapter interface {
	// Launch says how to start the agent on a task, in its first attempt and in later ones that continue it.
	Launch(Task) Launch
	// Pause returns the messages that ask the agent to pause before a checkpoint and say when the pause is over. The watchdog waits for the
	// answer for the given time. Both are nil if the runtime does not support pauses.
	Pause(checkpoint string, within time.Duration) (ask, resume any)
}

// inJSON is a value of texts, which can always be written down.
func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(text)
}
