// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TestManyAgentsDoNotEndACooldown of the main thread: however many work for it, it is told of an anomaly as often as without them.
func TestManyAgentsDoNotEndACooldown(t *testing.T) {
	var s State
	rules := Defaults()
	main := anomaly.Finding{Kind: anomaly.AgentStalled, Thread: 1, Main: true, Evidence: "no turn brings anything", Detector: "stall"}
	wrong := episodes(main)
	told := 0
	for turn := int64(1); turn <= int64(rules.Cooldown); turn++ {
		if step, ok := s.Decide(wrong, TurnContext{Thread: 1, Kind: conversation.KindMain, Turn: turn}, rules); ok && step.Message != "" {
			told++
		}
		for sub := range 2 * conversation.MaxThreads {
			s.Decide(wrong, TurnContext{Thread: 100*int(turn) + sub, Kind: conversation.KindSub, Turn: 1}, Rules{Thresholds: anomaly.Thresholds{CheckEvery: 1}})
		}
	}
	if told != 1 {
		t.Errorf("told %d times within a cooldown", told)
	}
	s.Retain(func(thread int) bool { return thread == 1 })
	if len(s.Threads) != 1 || s.Threads[0].ID != 1 {
		t.Errorf("of one thread that is known, %d are remembered: %+v", len(s.Threads), s.Threads)
	}
}
