// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sidecalls knows which models the agents of a runtime use for small calls of their own, such as for titles. It is all that the
// gateway must know of runtimes.
package sidecalls

import "strings"

// Names of models that agents are given for side calls. No real model has that of Qwen Code.
const (
	Opencode = "small"
	QwenCode = "tidewaiter-small"
)

// Models are parts of the names of the models that a runtime uses for side calls. A runtime without any makes no side calls. Some side calls ask the
// agent's own model, but offer it no tools.
type Models []string

// byRuntime has every runtime whose agent asks models; tests of core/runtimes hold that none is missing.
var byRuntime = map[string]Models{
	"claude-code": {"haiku"},
	"codex":       {"-mini", "-nano"},
	"gemini-cli":  {"flash-lite"},
	"opencode":    {Opencode},
	"qwen-code":   {QwenCode},
}

// Of a runtime.
func Of(runtime string) Models { return byRuntime[runtime] }

// Any says whether there are any.
func (m Models) Any() bool { return len(m) > 0 }

// Has says whether a model is one of them.
func (m Models) Has(model string) bool {
	for _, text := range m {
		if strings.Contains(model, text) {
			return true
		}
	}
	return false
}
