// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "testing"

// TestWindowsOfKnownModels: by each name that providers, clouds and routers have for them. What looks like one of them is not taken for it.
func TestWindowsOfKnownModels(t *testing.T) {
	for name, want := range map[string]int64{
		"claude-sonnet-4-5": 200_000, "claude-sonnet-4-5-20250929": 200_000, "claude-sonnet-4-5@20250929": 200_000, "us.anthropic.claude-sonnet-4-5-20250929-v1:0": 200_000,
		"anthropic/claude-sonnet-4.5": 200_000, "claude-sonnet-5-5": 1_000_000, "gpt-5": 400_000, "gpt-5-2025-08-07": 400_000, "openai/gpt-5.1": 400_000,
		"google/gemini-2.5-pro": 1_048_576, "GPT-6.2-Sol": 1_050_000,
		"": 0, "gpt-5-mini": 0, "my-gpt-5": 0, "gpt-50": 0, "claude-sonnet-4-5-large": 0, "claude": 0, "/": 0,
	} {
		if got := (Config{Backends: []Backend{{Models: []Model{{Name: name}}}}}).WithWindows().Backends[0].Models[0].ContextWindow; got != want {
			t.Errorf("%s has a window of %d, want %d", name, got, want)
		}
	}
	own := Config{Backends: []Backend{{Models: []Model{{Name: "gpt-5", ContextWindow: 128_000}}}}}.WithWindows()
	if got := own.Backends[0].Models[0].ContextWindow; got != 128_000 {
		t.Errorf("a configured window became %d", got)
	}
}
