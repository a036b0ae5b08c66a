// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"cmp"
	"slices"
	"time"
)

// geminiCLI is Gemini CLI without a terminal. https://geminicli.com/docs/cli/headless
type geminiCLI struct{}

const (
	// geminiSettings are the user's settings, below HOME. Settings of the machine have to be in a folder that the agent cannot write.
	geminiSettings = ".gemini/settings.json"
	// geminiModel is its model where the policy names none.
	geminiModel = "primary"
)

// Launch implements Adapter.
func (geminiCLI) Launch(t Task) Launch {
	program := t.Command
	if len(program) == 0 {
		program = []string{"gemini"}
	}
	// It may do whatever its container lets it do: what it writes is checked by its effect.
	argv := slices.Concat(program, []string{"--output-format", "stream-json", "--approval-mode", "yolo", "--model", cmp.Or(t.Model, geminiModel)})
	if t.ReadOnly { // it uses no other tool server, whatever the repository names
		argv = append(argv, "--allowed-mcp-server-names", ToolServer)
	}
	if t.Goes() { // where there is no session it begins one
		argv = append(argv, "--resume", "latest")
	}
	argv = append(argv, t.Args...)
	env := []string{
		"HOME=" + t.Home,
		"GOOGLE_GEMINI_BASE_URL=" + t.Models + "/gemini",
		// It asks nobody without a key. The watchdog throws this one away.
		"GEMINI_API_KEY=none",
		// In a folder that is not trusted it asks a user before it calls a tool.
		"GEMINI_CLI_TRUST_WORKSPACE=true",
		// It needs no second process of itself with more memory: the limit of its container is known to the first.
		"GEMINI_CLI_NO_RELAUNCH=true",
	}
	text := t.Text()
	return Launch{Argv: argv, Env: append(env, t.Env...), Input: &text, Files: map[string]string{geminiSettings: geminiConfig(t.Tools, t.ReadOnly)}}
}

// geminiConfig are its settings. https://geminicli.com/docs/reference/configuration
func geminiConfig(tools string, readOnly bool) string {
	type object = map[string]any
	settings := object{
		// With only the address of a gateway it takes a way to log in that it refuses without a terminal.
		"security": object{"auth": object{"selectedType": "gemini-api-key"}},
		// There is nobody to reach but the gateway, and the image is what it is.
		"general":   object{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
		"privacy":   object{"usageStatisticsEnabled": false},
		"telemetry": object{"enabled": false},
		// It would end itself, where a supervisor has the model do something else.
		"model": object{"disableLoopDetection": true},
	}
	if readOnly {
		settings["tools"] = object{"exclude": []string{"replace", "write_file"}}
	}
	if tools != "" {
		settings["mcpServers"] = object{ToolServer: object{"httpUrl": tools, "timeout": toolPatience * 1000, "trust": true}}
	}
	return inJSON(settings)
}

// Pause implements Adapter: it knows of no pauses.
func (geminiCLI) Pause(string, time.Duration) (ask, resume any) { return nil, nil }
