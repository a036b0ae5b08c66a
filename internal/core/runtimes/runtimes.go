// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimes knows what each way to run an agent can do, and in which execution mode a Feature's agent runs.
package runtimes

import "github.com/tidewaiter/tidewaiter/internal/core/policy"

// Channel is how messages reach a running agent.
type Channel string

// Channels.
const (
	// ChannelStdin: one JSON object a line on the standard input of its process.
	ChannelStdin Channel = "JSON lines on standard input"
	// ChannelSession: when it has ended, by a further turn of its session.
	ChannelSession Channel = "a further turn of its session, when it has ended"
	// ChannelTools: in the answers of the tools that it calls (Deterministic mode).
	ChannelTools Channel = "answers of its tools"
)

// Pause is how the watchdog holds a running agent still.
type Pause string

// Pauses.
const (
	// PauseSignal: every process is stopped by the kernel and need not know of it.
	PauseSignal Pause = "signal"
	// PauseMessage: as PauseSignal, but the watchdog first asks an agent that said that it takes part.
	PauseMessage Pause = "message, then signal"
	// PauseNone: it never writes to the workspace, so that there is nothing to hold still.
	PauseNone Pause = "none"
)

// Runtime says what a runtime can do.
type Runtime struct {
	// Name as in spec.agent.runtime.
	Name string
	// Available in this version; a Feature with another runtime is not accepted.
	Available bool
	// Interactive: the agent can write files itself.
	Interactive bool
	// Deterministic: the agent can do its work only with the watchdog's tools.
	Deterministic bool
	// MCP: its adapter configures the watchdog's tools, so that the agent has some of them in Interactive mode, too.
	MCP bool
	// Channel by which it gets violations while it works in Interactive mode.
	Channel Channel
	// Sessions: it can start again in its session, with a message.
	Sessions bool
	// Pause of it.
	Pause Pause
	// Dialect of its model calls; empty if it makes none, or if it speaks all dialects.
	Dialect string
	// EveryDialect: it uses the dialect of its backend.
	EveryDialect bool
	// Included: its program is in Tidewaiter's own image, and no other is wanted.
	Included bool
	// Adapter drives it; nil if it is not available.
	Adapter Adapter
	// Doc tells users what it is.
	Doc string
}

// All are the runtimes; the first one takes any image. A new runtime is an entry here.
func All() []Runtime {
	return []Runtime{
		{
			Name: "command", Available: true, Interactive: true, Deterministic: true, Channel: ChannelStdin, Pause: PauseMessage, Adapter: command{},
			Doc: "Any image with a command. In Deterministic mode the command is an MCP client: it finds the tools at `TIDEWAITER_MCP_URL`.",
		},
		{
			Name: "claude-code", Available: true, Interactive: true, Deterministic: true, MCP: true, Channel: ChannelSession, Sessions: true, Pause: PauseSignal, Adapter: claudeCode{},
			Dialect: "anthropic",
			Doc:     "Claude Code without a terminal. Its image needs the program `claude` in its `PATH`, or `spec.agent.command` names it.",
		},
		{
			Name: "codex", Available: true, Interactive: true, Deterministic: true, MCP: true, Channel: ChannelSession, Sessions: true, Pause: PauseSignal, Adapter: codex{},
			Dialect: "openai-responses",
			Doc:     "Codex CLI (`codex exec`). Its image needs the program `codex` in its `PATH`, or `spec.agent.command` names it.",
		},
		{
			Name: "opencode", Available: true, Interactive: true, Deterministic: true, MCP: true, Channel: ChannelSession, Sessions: true, Pause: PauseSignal, Adapter: opencode{},
			Dialect: "openai-chat",
			Doc:     "opencode (`opencode run`). Its image needs the program `opencode` in its `PATH`, or `spec.agent.command` names it.",
		},
		{
			Name: "qwen-code", Available: true, Interactive: true, Deterministic: true, MCP: true, Channel: ChannelSession, Sessions: true, Pause: PauseSignal, Adapter: qwenCode{},
			Dialect: "openai-chat",
			Doc:     "Qwen Code without a terminal. Its image needs the program `qwen` in its `PATH`, or `spec.agent.command` names it.",
		},
		{
			Name: "gemini-cli", Available: true, Interactive: true, Deterministic: true, MCP: true, Channel: ChannelSession, Sessions: true, Pause: PauseSignal, Adapter: geminiCLI{},
			Dialect: "gemini",
			Doc:     "Gemini CLI without a terminal. Its image needs the program `gemini` in its `PATH`, or `spec.agent.command` names it.",
		},
		{
			Name: "worker", Available: true, Deterministic: true, Channel: ChannelTools, Pause: PauseNone, Adapter: worker{}, EveryDialect: true, Included: true,
			Doc: "The built-in worker: a loop of model and tools that touches no file itself, for every model that calls tools. It needs no image.",
		},
	}
}

// Serves says whether the agent has tools of the watchdog in a mode: all of them if it cannot write itself.
func (r Runtime) Serves(mode string) bool { return mode == policy.ModeDeterministic || r.MCP }

// Find returns the record of a runtime; false if there is none of that name.
func Find(name string) (Runtime, bool) {
	for _, r := range All() {
		if r.Name == name {
			return r, true
		}
	}
	return Runtime{}, false
}
