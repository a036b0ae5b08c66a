// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/sidecalls"
)

// qwenCode is Qwen Code without a terminal. https://qwenlm.github.io/qwen-code-docs/en/users/features/headless/
type qwenCode struct{}

const (
	// qwenSettings are below HOME, and named by a variable: they are the machine's settings, which count before the user's and the repository's.
	qwenSettings = ".tidewaiter/qwen-code.json"
	// qwenModel is its model where the policy names none.
	qwenModel = "primary"
)

// Launch implements Adapter.
func (qwenCode) Launch(t Task) Launch {
	program := t.Command
	if len(program) == 0 {
		program = []string{"qwen"}
	}
	model, url := cmp.Or(t.Model, qwenModel), t.Models+"/openai/v1"
	// It may do whatever its container lets it do: what it writes is checked by its effect.
	argv := slices.Concat(program, []string{"--output-format", "stream-json", "--approval-mode", "yolo", "--auth-type", "openai", "--model", model})
	if t.ReadOnly { // it uses no other tool server, whatever the repository names
		argv = append(argv, "--allowed-mcp-server-names", ToolServer)
	}
	if t.Goes() { // where there is no session it begins one
		argv = append(argv, "--continue")
	}
	argv = append(argv, t.Args...)
	env := []string{
		"HOME=" + t.Home,
		"OPENAI_BASE_URL=" + url,
		// It asks nobody without a key. The watchdog throws this one away.
		"OPENAI_API_KEY=none",
		"QWEN_CODE_SYSTEM_SETTINGS_PATH=" + t.Home + "/" + qwenSettings,
		// Its container is its sandbox.
		"QWEN_CODE_SUPPRESS_YOLO_WARNING=1",
	}
	text := t.Text()
	return Launch{Argv: argv, Env: append(env, t.Env...), Input: &text, Files: map[string]string{qwenSettings: qwenConfig(url, model, t.Tools, t.ReadOnly)}}
}

// qwenConfig are its settings. https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings/
func qwenConfig(url, model, tools string, readOnly bool) string {
	type object = map[string]any
	provider := func(name string) object {
		return object{"id": name, "name": name, "envKey": "OPENAI_API_KEY", "baseUrl": url}
	}
	settings := object{
		// There is nobody to reach but the gateway, and the image is what it is.
		"general":   object{"enableAutoUpdate": false},
		"privacy":   object{"usageStatisticsEnabled": false},
		"telemetry": object{"enabled": false},
		"security":  object{"folderTrust": object{"enabled": false}},
		// After each task it would work on notes for a next one, and there is none.
		"memory":         object{"enableManagedAutoMemory": false, "enableManagedAutoDream": false},
		"fastModel":      sidecalls.QwenCode,
		"modelProviders": object{"openai": []object{provider(model), provider(sidecalls.QwenCode)}},
	}
	if readOnly {
		// What is excluded, instead, takes commands that write files along.
		settings["tools"] = object{"disabled": []string{"edit", "write_file", "notebook_edit"}}
	}
	if tools != "" {
		// Its model has the tools at once: it need not look for them first.
		settings["mcpServers"] = object{ToolServer: object{"httpUrl": tools, "timeout": toolPatience * 1000, "trust": true, "alwaysLoadTools": true}}
	}
	return inJSON(settings)
}

// Pause implements Adapter: it knows of no pauses.
func (qwenCode) Pause(string, time.Duration) (ask, resume any) { return nil, nil }
