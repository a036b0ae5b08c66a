// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"regexp"
	"strings"
)

// windows are the context windows of well-known models in tokens, read on 2026-11-25. They count where a configuration has none. What a provider
// gives only on request, such as a larger window, is not here: a window that is too small speaks too early, one that is too large never.
var windows = map[string]int64{
	// https://platform.claude.com/docs/en/models/sonnet-5/overview, which compares it with the others
	"claude-fable-5-1":  1_000_000,
	"claude-fable-5-2":  1_000_000,
	"claude-opus-5-5":   1_000_000,
	"claude-sonnet-5":   1_000_000,
	"claude-sonnet-5-5": 1_000_000,
	// https://platform.claude.com/docs/en/models/opus-5/overview
	"claude-opus-5": 1_000_000,
	// https://docs.uipath.com/autopilot/other/latest/user-guide/supported-models-and-limits
	"claude-sonnet-4-5": 200_000,
	"gemini-2-5-flash":  1_048_576,
	"gemini-2-5-pro":    1_048_576,
	"gpt-5":             400_000,
	// https://github.com/labring/fastgpt-plugin/pull/242 and /pull/297
	"claude-haiku-4-5": 200_000,
	"claude-opus-4-1":  200_000,
	"gpt-5-1":          400_000,
	// https://docs.oxen.ai/inference-api/reference/models/gpt-5-5-2026-04-23
	"gpt-5-5": 1_050_000,
	// https://docs.rs/crate/llmr/latest/source/models/openai.toml
	"gpt-5-6-sol": 1_050_000,
	// config/samples/model-backends.yaml, with the pages that it names
	"claude-haiku-5-5":  1_000_000,
	"gemini-4-hydrogen": 1_048_576,
	"gemini-4-neon":     1_048_576,
	"gpt-6-2-astra":     1_050_000,
	"gpt-6-2-sol":       1_050_000,
}

// version is what a name says after that of the model: a date, and the version of a cloud that has it.
var version = regexp.MustCompile(`([-@](\d{8}|\d{4}-\d{2}-\d{2}))?(-v\d+(:\d+)?)?$`)

// known window of a model in tokens; 0 where nobody knows it. A name may have the publisher or the region before it, as clouds and routers have it,
// and dots in its version.
func known(name string) int64 {
	name = strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	if i := strings.LastIndex(name, "anthropic."); i >= 0 {
		name = name[i+len("anthropic."):]
	}
	return windows[strings.ReplaceAll(version.ReplaceAllString(name, ""), ".", "-")]
}

// WithWindows is the configuration with the context windows of well-known models, if it does not set them.
func (c Config) WithWindows() Config {
	for _, b := range c.Backends {
		for i, m := range b.Models {
			if m.ContextWindow == 0 {
				b.Models[i].ContextWindow = known(m.Name)
			}
		}
	}
	return c
}
