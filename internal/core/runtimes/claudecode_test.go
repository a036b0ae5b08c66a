// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

func TestClaudeCode(t *testing.T) {
	r, ok := runtimes.Find("claude-code")
	if !ok || r.Adapter == nil {
		t.Fatal("there is no adapter")
	}
	flags := []string{"--print", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"}
	for name, tc := range map[string]struct {
		task  runtimes.Task
		argv  []string
		input string
	}{
		"as it is":             {runtimes.Task{Prompt: "Add a page."}, slices.Concat([]string{"claude"}, flags), "Add a page."},
		"with arguments":       {runtimes.Task{Prompt: "p", Args: []string{"--max-turns", "9"}}, slices.Concat([]string{"claude"}, flags, []string{"--max-turns", "9"}), "p"},
		"its own program":      {runtimes.Task{Prompt: "p", Command: []string{"/opt/claude", "--debug"}}, slices.Concat([]string{"/opt/claude", "--debug"}, flags), "p"},
		"with instructions":    {runtimes.Task{Prompt: "Shop.", Instructions: "Add a form."}, slices.Concat([]string{"claude"}, flags), "Shop.\n\nAdd a form."},
		"instructions alone":   {runtimes.Task{Instructions: "Add a form."}, slices.Concat([]string{"claude"}, flags), "Add a form."},
		"nothing that a shell": {runtimes.Task{Prompt: "$(rm -rf /) --help"}, slices.Concat([]string{"claude"}, flags), "$(rm -rf /) --help"},
	} {
		tc.task.Home, tc.task.Models, tc.task.Env = "/home/agent", "http://127.0.0.1:1", []string{"ANTHROPIC_MODEL=opus"}
		how := r.Adapter.Launch(tc.task)
		if diff := cmp.Diff(tc.argv, how.Argv); diff != "" || how.Input == nil || *how.Input != tc.input {
			t.Errorf("%s: input %v, argv (-want +got):\n%s", name, how.Input, diff)
		}
		for _, want := range []string{"HOME=/home/agent", "ANTHROPIC_BASE_URL=http://127.0.0.1:1/anthropic", "ANTHROPIC_MODEL=opus"} {
			if !slices.Contains(how.Env, want) {
				t.Errorf("%s: the environment lacks %s: %v", name, want, how.Env)
			}
		}
	}
	if ask, resume := r.Adapter.Pause("c", 1); ask != nil || resume != nil {
		t.Errorf("it is asked to pause: %v, %v", ask, resume)
	}
}
