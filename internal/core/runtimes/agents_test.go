// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/core/sidecalls"
)

// TestAgents: what every runtime with a program of its own does.
func TestAgents(t *testing.T) {
	for _, r := range runtimes.All() {
		if r.Adapter == nil || r.Name == "command" {
			continue
		}
		task := runtimes.Task{
			Home: "/home/agent", Models: "http://127.0.0.1:1", Prompt: "$(rm -rf /) --help", Instructions: "Add a \"form\".",
			Args: []string{"--an-argument"}, Env: []string{"A=1"},
		}
		how := r.Adapter.Launch(task)
		all := whole(how)
		if how.Input == nil || *how.Input != "$(rm -rf /) --help\n\nAdd a \"form\"." || strings.Contains(all, "rm -rf") {
			t.Errorf("%s: the prompt is %v, the rest %s", r.Name, how.Input, all)
		}
		if !slices.Contains(how.Argv, "--an-argument") || !slices.Contains(how.Env, "HOME=/home/agent") || how.Env[len(how.Env)-1] != "A=1" {
			t.Errorf("%s: %s", r.Name, all)
		}
		if asks := strings.Contains(all, "http://127.0.0.1:1/") && r.Dialect != ""; asks == r.EveryDialect { // the latter finds it in its environment
			t.Errorf("%s: asks no model of ours: %s", r.Name, all)
		}
		task.Command = []string{"/opt/own", "--first"}
		if own := r.Adapter.Launch(task).Argv; !slices.Equal(own[:2], task.Command) || !slices.Equal(own[2:], how.Argv[1:]) {
			t.Errorf("%s: with a program of its own: %q", r.Name, own)
		}
		if ask, resume := r.Adapter.Pause("c", 1); ask != nil || resume != nil {
			t.Errorf("%s: is asked to pause", r.Name)
		}
		for name, text := range how.Files {
			if !filepath.IsLocal(name) || !json.Valid([]byte(text)) || strings.Contains(text, "rm -rf") {
				t.Errorf("%s: file %s: %s", r.Name, name, text)
			}
		}
	}
}

// TestTools: in Deterministic mode an agent has the watchdog's tools and no other server of tools, and is told that it cannot write.
func TestTools(t *testing.T) {
	const url = "http://127.0.0.1:2/mcp"
	configured := map[string][]string{
		"claude-code": {"--disallowedTools\nEdit,Write,NotebookEdit\n--mcp-config\n" + `{"mcpServers":{"tidewaiter":{"type":"http","url":"` + url + `","alwaysLoad":true}}}` + "\n--strict-mcp-config\n--an-argument"},
		"codex": {`mcp_servers.tidewaiter.url="` + url + `"`, `mcp_servers.tidewaiter.default_tools_approval_mode="approve"`, "mcp_servers.tidewaiter.required=true",
			"mcp_servers.tidewaiter.tool_timeout_sec=300"},
		"opencode": {`"mcp":{"tidewaiter":{"type":"remote","url":"` + url + `","enabled":true,"oauth":false,"timeout":300000}}`, `OPENCODE_PERMISSION={"bash":"allow","edit":"deny"`},
		"qwen-code": {"--allowed-mcp-server-names\ntidewaiter\n--an-argument", `"mcpServers":{"tidewaiter":{"alwaysLoadTools":true,"httpUrl":"` + url + `","timeout":300000,"trust":true}}`,
			`"tools":{"disabled":["edit","write_file","notebook_edit"]}`},
		"gemini-cli": {"--allowed-mcp-server-names\ntidewaiter\n--an-argument", `"mcpServers":{"tidewaiter":{"httpUrl":"` + url + `","timeout":300000,"trust":true}}`,
			`"tools":{"exclude":["replace","write_file"]}`},
	}
	for _, r := range runtimes.All() {
		if r.Adapter == nil || r.Name == "command" {
			continue
		}
		task := runtimes.Task{Prompt: "Add a form.", Args: []string{"--an-argument"}, Tools: url, ReadOnly: true}
		how := r.Adapter.Launch(task)
		all := whole(how)
		for _, part := range configured[r.Name] {
			if !strings.Contains(all, part) {
				t.Errorf("%s lacks %s:\n%s", r.Name, part, all)
			}
		}
		if told := strings.HasPrefix(*how.Input, "Add a form.\n\nThe workspace is read-only") && strings.Contains(*how.Input, "call task_complete"); told == r.Included {
			t.Errorf("%s is told %q", r.Name, *how.Input)
		}
		if r.Deterministic != (configured[r.Name] != nil || r.Included) {
			t.Errorf("%s has no tools", r.Name)
		}
		task.Tools, task.ReadOnly = "", false
		how = r.Adapter.Launch(task)
		if all := whole(how); strings.Contains(all, "mcp") || strings.Contains(all, "deny") || *how.Input != "Add a form." {
			t.Errorf("%s without tools: %q, %s", r.Name, *how.Input, all)
		}
	}
}

// TestToolsBesideItsOwn: in Interactive mode an agent has the watchdog's tools, calls them without a user's approval, keeps every tool and every other
// server of its own, works on without the server, and is told what it is told without it.
func TestToolsBesideItsOwn(t *testing.T) {
	const url = "http://127.0.0.1:2/mcp"
	configured := map[string][]string{
		"claude-code": {"--dangerously-skip-permissions\n--mcp-config\n" + `{"mcpServers":{"tidewaiter":{"type":"http","url":"` + url + `","alwaysLoad":true}}}`},
		"codex":       {`mcp_servers.tidewaiter.url="` + url + `"`, `mcp_servers.tidewaiter.default_tools_approval_mode="approve"`, "mcp_servers.tidewaiter.required=false"},
		"opencode":    {`"mcp":{"tidewaiter":{"type":"remote","url":"` + url + `"`, `OPENCODE_PERMISSION={"bash":"allow","edit":"allow"`},
		"qwen-code":   {"--approval-mode\nyolo", `"mcpServers":{"tidewaiter":{"alwaysLoadTools":true,"httpUrl":"` + url + `","timeout":300000,"trust":true}}`},
		"gemini-cli":  {"--approval-mode\nyolo", `"mcpServers":{"tidewaiter":{"httpUrl":"` + url + `","timeout":300000,"trust":true}}`},
	}
	for _, r := range runtimes.All() {
		if r.MCP != (configured[r.Name] != nil) || r.Serves(policy.ModeInteractive) != r.MCP || r.Serves(policy.ModeDeterministic) != r.Deterministic {
			t.Errorf("%s: it has tools in Interactive mode: %v", r.Name, r.MCP)
		}
		if !r.MCP {
			continue
		}
		how := r.Adapter.Launch(runtimes.Task{Prompt: "Add a form.", Tools: url})
		all := whole(how)
		for _, part := range configured[r.Name] {
			if !strings.Contains(all, part) {
				t.Errorf("%s lacks %s:\n%s", r.Name, part, all)
			}
		}
		for _, part := range []string{"--disallowedTools", "--strict-mcp-config", "--allowed-mcp-server-names", `"exclude"`, `"tools":{"disabled"`, `"edit":"deny"`} {
			if strings.Contains(all, part) {
				t.Errorf("%s has %s:\n%s", r.Name, part, all)
			}
		}
		if *how.Input != "Add a form." {
			t.Errorf("%s is told %q", r.Name, *how.Input)
		}
	}
}

// whole is all that an agent is started with but its prompt.
func whole(how runtimes.Launch) string {
	return strings.Join(slices.Concat(how.Argv, how.Env, slices.Sorted(maps.Values(how.Files))), "\n")
}

func TestCodexNamesItsModel(t *testing.T) {
	r, _ := runtimes.Find("codex")
	for model, want := range map[string]string{"": `model="primary"`, "gpt-x": `model="gpt-x"`} {
		if argv := r.Adapter.Launch(runtimes.Task{Model: model}).Argv; !slices.Contains(argv, want) || argv[len(argv)-1] != "-" {
			t.Errorf("model %q: %q", model, argv)
		}
	}
}

func TestOpencodeConfiguration(t *testing.T) {
	r, _ := runtimes.Find("opencode")
	for _, variable := range r.Adapter.Launch(runtimes.Task{Models: "http://127.0.0.1:1"}).Env {
		name, value, _ := strings.Cut(variable, "=")
		var anything map[string]any
		if strings.HasPrefix(name, "OPENCODE_") && json.Unmarshal([]byte(value), &anything) != nil {
			t.Errorf("%s is not JSON: %s", name, value)
		}
	}
}

// TestOpencodeKnowsItsWindow: it compacts a conversation by the window of its model, and leaves room for an answer in a small one. Of a window that
// nobody knows it is told nothing, so that it goes by what the provider refuses.
func TestOpencodeKnowsItsWindow(t *testing.T) {
	r, _ := runtimes.Find("opencode")
	for window, want := range map[int64]string{
		0:         `"models":{"primary":{"name":"primary"},"small":{"name":"small"}}`,
		32_000:    `"models":{"primary":{"name":"primary","limit":{"context":32000,"output":8000}},"small":{"name":"small"}}`,
		200_000:   `"models":{"primary":{"name":"primary","limit":{"context":200000,"output":32000}},"small":{"name":"small"}}`,
		1_000_000: `"models":{"primary":{"name":"primary","limit":{"context":1000000,"output":32000}},"small":{"name":"small"}}`,
	} {
		if got := whole(r.Adapter.Launch(runtimes.Task{Window: window})); !strings.Contains(got, want) {
			t.Errorf("a window of %d: %s\nwant %s", window, got, want)
		}
	}
}

// TestSessions: an agent that was interrupted, or whose work is not valid, goes on in its session. The one may have none and is
// told its task again; the other is told what is wrong, and that alone.
func TestSessions(t *testing.T) {
	flags := map[string][]string{"claude-code": {"--continue"}, "codex": {"resume", "--last"}, "opencode": {"--continue"}, "qwen-code": {"--continue"}, "gemini-cli": {"--resume", "latest"}}
	for _, r := range runtimes.All() {
		if !r.Sessions {
			if flags[r.Name] != nil || r.Channel == runtimes.ChannelSession {
				t.Errorf("%s has no sessions", r.Name)
			}
			continue
		}
		if flags[r.Name] == nil {
			t.Errorf("%s: say here by which arguments it goes on in its session", r.Name)
			continue
		}
		has := func(how runtimes.Launch) bool {
			i := slices.Index(how.Argv, flags[r.Name][0])
			return i >= 0 && slices.Equal(how.Argv[i:i+len(flags[r.Name])], flags[r.Name])
		}
		task := runtimes.Task{Prompt: "Shop.", Instructions: "Add a form."}
		if how := r.Adapter.Launch(task); has(how) || *how.Input != "Shop.\n\nAdd a form." {
			t.Errorf("%s: at its start: %q, %q", r.Name, how.Argv, *how.Input)
		}
		task.Interrupted = true
		if how := r.Adapter.Launch(task); !has(how) || !strings.HasPrefix(*how.Input, "You were interrupted") || !strings.HasSuffix(*how.Input, "\n\nShop.\n\nAdd a form.") {
			t.Errorf("%s: interrupted: %q, %q", r.Name, how.Argv, *how.Input)
		}
		task.Correction = "Remove evil.html."
		if how := r.Adapter.Launch(task); !has(how) || *how.Input != "Remove evil.html." {
			t.Errorf("%s: corrected: %q, %q", r.Name, how.Argv, *how.Input)
		}
	}
}

// TestSideCalls: the gateway knows the calls of every client that asks models by itself.
func TestSideCalls(t *testing.T) {
	for _, r := range runtimes.All() {
		if r.Dialect != "" && !sidecalls.Of(r.Name).Any() {
			t.Errorf("%s: say in internal/core/sidecalls which models it asks for small calls of its own", r.Name)
		}
	}
}
