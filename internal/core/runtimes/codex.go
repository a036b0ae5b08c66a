// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// codex is the Codex CLI without a terminal. https://developers.openai.com/codex/noninteractive
type codex struct{}

// unknownModel is none that Codex knows. It then offers the tools that every model can use; by its own default it would offer the tools of
// a model that may not be the one that answers.
const unknownModel = "primary"

// codexPatience is how long it waits for the next event, in milliseconds. A stream that is checked has none until it ends, and the
// gateway ends one whose backend says nothing.
const codexPatience = 3_600_000

// Launch implements Adapter. Its own sandbox is off: it needs rights that the container does not have, and the container holds back the same.
func (codex) Launch(t Task) Launch {
	program := t.Command
	if len(program) == 0 {
		program = []string{"codex"}
	}
	const provider = "model_providers.tidewaiter."
	setting := func(name, value string) []string { return []string{"--config", name + "=" + strconv.Quote(value)} }
	var session []string
	if t.Goes() { // where there is no session it begins one
		session = []string{"resume", "--last"}
	}
	var tools []string
	if t.Tools != "" { // https://developers.openai.com/codex/mcp
		const server = "mcp_servers." + ToolServer + "."
		// Without a terminal it would call no tool that is not approved. Where it can only work through the tools, it must not end well without them.
		tools = slices.Concat(setting(server+"url", t.Tools), setting(server+"default_tools_approval_mode", "approve"),
			[]string{"--config", server + "required=" + strconv.FormatBool(t.ReadOnly), "--config", server + "tool_timeout_sec=" + strconv.Itoa(toolPatience)})
	}
	argv := slices.Concat(program, []string{"exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access"},
		setting("model", cmp.Or(t.Model, unknownModel)), setting("model_provider", "tidewaiter"), setting(provider+"name", "Tidewaiter"),
		setting(provider+"base_url", t.Models+"/openai/v1"), setting(provider+"wire_api", "responses"),
		[]string{"--config", provider + "stream_idle_timeout_ms=" + strconv.Itoa(codexPatience)},
		tools, t.Args, session, []string{"-"})
	text := t.Text()
	return Launch{Argv: argv, Env: append([]string{"HOME=" + t.Home}, t.Env...), Input: &text}
}

// Pause implements Adapter: it knows of no pauses.
func (codex) Pause(string, time.Duration) (ask, resume any) { return nil, nil }
