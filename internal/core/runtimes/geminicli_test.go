// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

func TestGeminiCLI(t *testing.T) {
	r, _ := runtimes.Find("gemini-cli")
	flags := func(model string) []string {
		return []string{"--output-format", "stream-json", "--approval-mode", "yolo", "--model", model}
	}
	const (
		general = `{"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false},`
		servers = `"mcpServers":{"tidewaiter":{"httpUrl":"http://127.0.0.1:2/mcp","timeout":300000,"trust":true}},`
		rest    = `"model":{"disableLoopDetection":true},"privacy":{"usageStatisticsEnabled":false},"security":{"auth":{"selectedType":"gemini-api-key"}},"telemetry":{"enabled":false}`
		exclude = `,"tools":{"exclude":["replace","write_file"]}`
	)
	for name, tc := range map[string]struct {
		task   runtimes.Task
		argv   []string
		config string
	}{
		"as it is":               {runtimes.Task{}, slices.Concat([]string{"gemini"}, flags("primary")), general + rest + "}"},
		"with a model":           {runtimes.Task{Model: "gemini-3-pro-preview"}, slices.Concat([]string{"gemini"}, flags("gemini-3-pro-preview")), general + rest + "}"},
		"its own program":        {runtimes.Task{Command: []string{"node", "/opt/gemini"}}, slices.Concat([]string{"node", "/opt/gemini"}, flags("primary")), general + rest + "}"},
		"interrupted, arguments": {runtimes.Task{Interrupted: true, Args: []string{"-d"}}, slices.Concat([]string{"gemini"}, flags("primary"), []string{"--resume", "latest", "-d"}), general + rest + "}"},
		"with tools": {runtimes.Task{Tools: "http://127.0.0.1:2/mcp", ReadOnly: true}, slices.Concat([]string{"gemini"}, flags("primary"), []string{"--allowed-mcp-server-names", "tidewaiter"}),
			general + servers + rest + exclude + "}"},
	} {
		tc.task.Home, tc.task.Models, tc.task.Env = "/home/agent", "http://127.0.0.1:1", []string{"A=1"}
		got := r.Adapter.Launch(tc.task)
		if diff := cmp.Diff(tc.argv, got.Argv); diff != "" {
			t.Errorf("%s: argv (-want +got):\n%s", name, diff)
		}
		env := []string{
			"HOME=/home/agent", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1/gemini", "GEMINI_API_KEY=none",
			"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true", "A=1",
		}
		if diff := cmp.Diff(env, got.Env); diff != "" {
			t.Errorf("%s: environment (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(map[string]string{".gemini/settings.json": tc.config}, got.Files); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", name, diff)
		}
	}
}
