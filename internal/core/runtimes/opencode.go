// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"encoding/json"
	"slices"
	"time"
)

// opencode is opencode without a terminal. https://opencode.ai/docs/cli/#run
type opencode struct{}

// Names of the models that opencode asks for; the gateway knows the small one by it.
const (
	opencodeModel = "primary"
	opencodeSmall = "small"
)

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
	env := []string{
		"HOME=" + t.Home,
		"OPENCODE_CONFIG_CONTENT=" + opencodeConfig(t.Models+"/openai/v1"),
		// It may do whatever its container lets it do: what it writes is judged by its effect.
		`OPENCODE_PERMISSION={"bash":"allow","edit":"allow","webfetch":"allow","external_directory":"allow","doom_loop":"allow"}`,
	}
	text := t.Text()
	return Launch{Argv: argv, Env: append(env, t.Env...), Input: &text}
}

func opencodeConfig(url string) string {
	type named struct {
		Name string `json:"name"`
	}
	type provider struct {
		NPM     string            `json:"npm"`
		Name    string            `json:"name"`
		Options map[string]string `json:"options"`
		Models  map[string]named  `json:"models"`
	}
	config, err := json.Marshal(struct {
		Model      string              `json:"model"`
		SmallModel string              `json:"small_model"`
		Provider   map[string]provider `json:"provider"`
		Autoupdate bool                `json:"autoupdate"`
		Share      string              `json:"share"`
	}{
		Model: "tidewaiter/" + opencodeModel, SmallModel: "tidewaiter/" + opencodeSmall, Share: "disabled",
		Provider: map[string]provider{"tidewaiter": {
			NPM: "@ai-sdk/openai-compatible", Name: "Tidewaiter",
			// It asks nobody without a key. The watchdog throws this one away.
			Options: map[string]string{"baseURL": url, "apiKey": "none"},
			Models:  map[string]named{opencodeModel: {opencodeModel}, opencodeSmall: {opencodeSmall}},
		}},
	})
	if err != nil {
		return "{}" // texts alone can always be written down
	}
	return string(config)
}

// Pause implements Adapter: it knows of no pauses.
func (opencode) Pause(string, time.Duration) (ask, resume any) { return nil, nil }
