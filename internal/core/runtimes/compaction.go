// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "github.com/tidewaiter/tidewaiter/internal/core/anomaly"

// compactions are where the clients of runtimes make room by themselves, read on 2026-11-25. A user may have a client compact at another point: what it was seen to do counts, too.
var compactions = map[string]anomaly.Compaction{
	// The window without the most of an answer (20,000 of it at most) and without 13,000 more, by the documents of Claude Code.
	"claude-code": {Percent: 100, Free: 33_000},
	// No document of Codex has it. Its source has nine tenths for every model whose data names no other figure.
	// https://github.com/openai/codex/blob/0d4367d0e6a976082b36d9eea8f8a579fca368cb/codex-rs/protocol/src/openai_models.rs
	"codex": {Percent: 90},
	// The most of an answer, which it bounds at 32,000 tokens (OUTPUT_TOKEN_MAX). It knows no window of a model of which its
	// configuration has none, as that of a model whose window nobody knows: then it compacts when the provider refuses a request. packages/opencode/src/session/overflow.ts of its source.
	"opencode": {Percent: 100, Free: opencodeAnswer, MostFree: opencodeShare},
	// The documents of Qwen Code.
	"qwen-code": {Percent: 85, Free: 33_000},
	// model.compressionThreshold in the documents of Gemini CLI.
	"gemini-cli": {Percent: 50},
}

// Compaction of the runtime's client.
func (r Runtime) Compaction() anomaly.Compaction { return compactions[r.Name] }
