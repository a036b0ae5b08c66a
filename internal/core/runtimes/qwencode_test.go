// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

func TestQwenCode(t *testing.T) {
	r, _ := runtimes.Find("qwen-code")
	flags := func(model string) []string {
		return []string{"--output-format", "stream-json", "--approval-mode", "yolo", "--auth-type", "openai", "--model", model}
	}
	config := func(model, rest string) string {
		return `{"fastModel":"tidewaiter-small","general":{"enableAutoUpdate":false},` + rest +
			`"memory":{"enableManagedAutoDream":false,"enableManagedAutoMemory":false},"modelProviders":{"openai":[` +
			`{"baseUrl":"http://127.0.0.1:1/openai/v1","envKey":"OPENAI_API_KEY","id":"` + model + `","name":"` + model + `"},` +
			`{"baseUrl":"http://127.0.0.1:1/openai/v1","envKey":"OPENAI_API_KEY","id":"tidewaiter-small","name":"tidewaiter-small"}]},` +
			`"privacy":{"usageStatisticsEnabled":false},"security":{"folderTrust":{"enabled":false}},"telemetry":{"enabled":false}`
	}
	const servers, exclude = `"mcpServers":{"tidewaiter":{"alwaysLoadTools":true,"httpUrl":"http://127.0.0.1:2/mcp","timeout":300000,"trust":true}},`, `,"tools":{"disabled":["edit","write_file","notebook_edit"]}`
	for name, tc := range map[string]struct {
		task   runtimes.Task
		argv   []string
		config string
	}{
		"as it is":               {runtimes.Task{}, slices.Concat([]string{"qwen"}, flags("primary")), config("primary", "") + "}"},
		"with a model":           {runtimes.Task{Model: "qwen3-coder"}, slices.Concat([]string{"qwen"}, flags("qwen3-coder")), config("qwen3-coder", "") + "}"},
		"its own program":        {runtimes.Task{Command: []string{"node", "/opt/qwen"}}, slices.Concat([]string{"node", "/opt/qwen"}, flags("primary")), config("primary", "") + "}"},
		"interrupted, arguments": {runtimes.Task{Interrupted: true, Args: []string{"-d"}}, slices.Concat([]string{"qwen"}, flags("primary"), []string{"--continue", "-d"}), config("primary", "") + "}"},
		"with tools": {runtimes.Task{Tools: "http://127.0.0.1:2/mcp", ReadOnly: true}, slices.Concat([]string{"qwen"}, flags("primary"), []string{"--allowed-mcp-server-names", "tidewaiter"}),
			config("primary", servers) + exclude + "}"},
	} {
		tc.task.Home, tc.task.Models, tc.task.Env = "/home/agent", "http://127.0.0.1:1", []string{"A=1"}
		got := r.Adapter.Launch(tc.task)
		if diff := cmp.Diff(tc.argv, got.Argv); diff != "" {
			t.Errorf("%s: argv (-want +got):\n%s", name, diff)
		}
		env := []string{
			"HOME=/home/agent", "OPENAI_BASE_URL=http://127.0.0.1:1/openai/v1", "OPENAI_API_KEY=none",
			"QWEN_CODE_SYSTEM_SETTINGS_PATH=/home/agent/.tidewaiter/qwen-code.json", "QWEN_CODE_SUPPRESS_YOLO_WARNING=1", "A=1",
		}
		if diff := cmp.Diff(env, got.Env); diff != "" {
			t.Errorf("%s: environment (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(map[string]string{".tidewaiter/qwen-code.json": tc.config}, got.Files); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", name, diff)
		}
	}
}
