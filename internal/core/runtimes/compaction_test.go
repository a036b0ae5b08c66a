// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// TestCompaction: where each client compacts a conversation by itself, in a small, a usual and a large window. Those that are not known never do.
func TestCompaction(t *testing.T) {
	want := map[string][3]int64{
		"claude-code": {0, 167_000, 967_000}, "codex": {28_800, 180_000, 900_000}, "opencode": {24_000, 168_000, 968_000},
		"qwen-code": {0, 167_000, 850_000}, "gemini-cli": {16_000, 100_000, 500_000},
	}
	for _, r := range runtimes.All() {
		if r.Sessions && want[r.Name] == [3]int64{} {
			t.Errorf("%s: say where it makes room in its conversation, in compactions and here", r.Name)
		}
		for i, window := range []int64{32_000, 200_000, 1_000_000} {
			if got := r.Compaction().At(window); got != want[r.Name][i] {
				t.Errorf("%s compacts a window of %d at %d, want %d", r.Name, window, got, want[r.Name][i])
			}
		}
	}
}
