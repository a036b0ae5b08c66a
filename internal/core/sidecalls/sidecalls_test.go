// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecalls_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/sidecalls"
)

func TestHas(t *testing.T) {
	for runtime, models := range map[string]map[string]bool{
		"claude-code": {"claude-haiku-4-5": true, "claude-opus-5-5": false, "": false},
		"codex":       {"gpt-x-mini": true, "gpt-x-nano": true, "gpt-x": false},
		"gemini-cli":  {"gemini-3.5-flash-lite": true, "gemini-3.5-flash": false},
		"opencode":    {"small": true, "primary": false},
		"qwen-code":   {"tidewaiter-small": true, "primary": false, "mistral-small": false},
		"command":     {"small": false},
	} {
		side := sidecalls.Of(runtime)
		if side.Any() != (runtime != "command") {
			t.Errorf("%s makes side calls: %t", runtime, side.Any())
		}
		for model, want := range models {
			if side.Has(model) != want {
				t.Errorf("%s: model %q is for side calls: %t", runtime, model, !want)
			}
		}
	}
}
