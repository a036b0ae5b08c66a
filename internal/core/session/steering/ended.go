// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
)

// Ended decides what follows after the agent ended with a turn without tools because of a finding. Many agents end with any answer that
// calls no tool, so this says nothing about their task. The agent continues in its session, once. An agent without a session starts again
// from the beginning, whatever the ladder says, because the supervisor caused its end. If the agent ends with the same turn again, it
// starts again from the beginning if the ladder allows that, and the task fails otherwise. Steering tries no further turn without tools on
// the task. The episode of the finding may be over.
func (s *State) Ended(f anomaly.Finding, e *anomaly.Episode, turn TurnContext, session bool, r Rules) Step {
	again, restarted := slices.Contains(s.Spent, NoTools), slices.Contains(s.Spent, Restart)
	rung := Block
	switch {
	case session && !again:
		rung = NoTools
	case !restarted && (!again || r.allows(Restart)):
		rung = Restart
	}
	s.Spend(NoTools)
	text := message(f, rung, 0, turn, r)
	if rung == NoTools {
		text = opening(f, turn) + " " + resumed
	}
	if rung == Block {
		f.Evidence += unheeded
	}
	if e == nil {
		e = &anomaly.Episode{}
	}
	return done(e, f, rung, text, turn)
}

const (
	// resumed is the text for an agent that continues.
	resumed = "For that reason your last turn had no tools, and your run ended with it. The task does not count as done, and you have your tools again. Continue in " +
		"another way, or say that the work is complete (with task_complete, if you have that tool), or say what blocks it."
	// unheeded is the text for users about an agent that is given up.
	unheeded = "; the agent ended with a turn without tools, and it had been started again before"
)
