// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/sidecalls"
)

// opencode is opencode without a terminal. https://opencode.ai/docs/cli/#run
type opencode struct{}

// opencodeModel is the name of the model that opencode asks for.
const opencodeModel = "primary"

// Launch implements Adapter. All of its configuration is in the environment.
func (opencode) Launch(t Task) Launch {
	program := t.Command
	if len(program) == 0 {
		program = []string{"opencode"}
	}
	argv := slices.Concat(program, []string{"run", "--format", "json"})
	if t.Goes() { // where there is no session it begins one
		argv = append(argv, "--continue")
	}
	argv = append(argv, t.Args...)
	// It may do whatever its container lets it do: what it writes is checked by its effect.
	edit := "allow"
	if t.ReadOnly { // which is nothing
		edit = "deny"
	}
	env := []string{
		"HOME=" + t.Home,
		"OPENCODE_CONFIG_CONTENT=" + opencodeConfig(t.Models+"/openai/v1", t.Tools, t.Window),
		`OPENCODE_PERMISSION={"bash":"allow","edit":"` + edit + `","webfetch":"allow","external_directory":"allow","doom_loop":"allow"}`,
	}
	text := t.Text()
	return Launch{Argv: argv, Env: append(env, t.Env...), Input: &text}
}

// opencodeAnswer is the most that it asks for in one answer, in tokens, whatever its configuration says.
const opencodeAnswer = 32_000

// opencodeShare is the most of a window, in percent, that its configuration leaves for an answer: it keeps that much free.
const opencodeShare = 25

// opencodeConfig is its whole configuration; without tools it has no server of them. It makes room in a conversation by the window of its model, which
// it knows from nowhere else.
func opencodeConfig(url, tools string, window int64) string {
	// https://opencode.ai/docs/providers, under "Custom provider": it takes both or none.
	type limit struct {
		Context int64 `json:"context"`
		Output  int64 `json:"output"`
	}
	type named struct {
		Name  string `json:"name"`
		Limit *limit `json:"limit,omitempty"`
	}
	primary := named{Name: opencodeModel}
	if window > 0 {
		primary.Limit = &limit{Context: window, Output: min(opencodeAnswer, window*opencodeShare/100)}
	}
	type provider struct {
		NPM     string            `json:"npm"`
		Name    string            `json:"name"`
		Options map[string]string `json:"options"`
		Models  map[string]named  `json:"models"`
	}
	// https://opencode.ai/docs/mcp-servers
	type server struct {
		Type    string `json:"type"`
		URL     string `json:"url"`
		Enabled bool   `json:"enabled"`
		OAuth   bool   `json:"oauth"`
		// Timeout in milliseconds.
		Timeout int `json:"timeout"`
	}
	var servers map[string]server
	if tools != "" {
		servers = map[string]server{ToolServer: {Type: "remote", URL: tools, Enabled: true, Timeout: toolPatience * 1000}}
	}
	return inJSON(struct {
		Model      string              `json:"model"`
		SmallModel string              `json:"small_model"`
		Provider   map[string]provider `json:"provider"`
		Autoupdate bool                `json:"autoupdate"`
		Share      string              `json:"share"`
		MCP        map[string]server   `json:"mcp,omitempty"`
	}{
		Model: "tidewaiter/" + opencodeModel, SmallModel: "tidewaiter/" + sidecalls.Opencode, Share: "disabled", MCP: servers,
		Provider: map[string]provider{"tidewaiter": {
			NPM: "@ai-sdk/openai-compatible", Name: "Tidewaiter",
			// It asks nobody without a key. The watchdog throws this one away.
			Options: map[string]string{"baseURL": url, "apiKey": "none"},
			Models:  map[string]named{opencodeModel: primary, sidecalls.Opencode: {Name: sidecalls.Opencode}},
		}},
	})
}

// Pause implements Adapter: it knows of no pauses.
func (opencode) Pause(string, time.Duration) (ask, resume any) { return nil, nil }
