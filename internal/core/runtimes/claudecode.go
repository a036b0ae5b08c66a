// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"time"
)

// claudeCode is Claude Code without a terminal. https://code.claude.com/docs/en/headless
type claudeCode struct{}

// Launch implements Adapter. The prompt comes on standard input: as an argument it could be too long.
func (claudeCode) Launch(t Task) Launch {
	program := t.Command
	if len(program) == 0 {
		program = []string{"claude"}
	}
	// It may do whatever its container lets it do: what it writes is checked by its effect.
	argv := slices.Concat(program, []string{"--print", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"})
	if t.ReadOnly { // its own tools that write cannot; tools that read can
		argv = append(argv, "--disallowedTools", "Edit,Write,NotebookEdit")
	}
	if t.Tools != "" {
		argv = append(argv, "--mcp-config", claudeTools(t.Tools))
	}
	if t.ReadOnly { // it uses no other tool server, whatever the repository names
		argv = append(argv, "--strict-mcp-config")
	}
	if t.Goes() { // where there is no session it begins one
		argv = append(argv, "--continue")
	}
	argv = append(argv, t.Args...)
	env := []string{
		"HOME=" + t.Home,
		"ANTHROPIC_BASE_URL=" + t.Models + "/anthropic",
		// It asks nobody without a key. The watchdog throws this one away.
		"ANTHROPIC_AUTH_TOKEN=none",
		// There is nobody to reach but the gateway, and the image is what it is.
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1",
		// With a user namespace it may take itself for root, and refuses to skip permissions then.
		"IS_SANDBOX=1",
	}
	if t.Model != "" {
		env = append(env, "ANTHROPIC_MODEL="+t.Model)
	}
	text := t.Text()
	return Launch{Argv: argv, Env: append(env, t.Env...), Input: &text}
}

// claudeTools is the configuration of one server of tools. https://code.claude.com/docs/en/mcp
func claudeTools(url string) string {
	type server struct {
		Type string `json:"type"`
		URL  string `json:"url"`
		// AlwaysLoad offers the tools to the model at once: it need not look for them first.
		AlwaysLoad bool `json:"alwaysLoad"`
	}
	return inJSON(map[string]map[string]server{"mcpServers": {ToolServer: {"http", url, true}}})
}

// Pause implements Adapter: it knows of no pauses.
func (claudeCode) Pause(string, time.Duration) (ask, resume any) { return nil, nil }
