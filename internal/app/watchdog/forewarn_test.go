// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// TestALookWaitsForWhatIsInProgress: what an agent writes while it is started, or during a checkpoint, is looked at when that has ended.
func TestALookWaitsForWhatIsInProgress(t *testing.T) {
	l := atWork(t)
	l.state.Agent.Running = true
	for name, tc := range map[string]struct {
		doing          supervise.Kind
		frozen, parked bool
		later          bool
	}{
		"nothing is in progress": {doing: supervise.Wait},
		"the agent is started":   {doing: supervise.Start, later: true},
		"a checkpoint is taken":  {doing: supervise.Checkpoint, frozen: true, later: true},
		"the agent is frozen":    {doing: supervise.Wait, frozen: true, later: true},
		"no agent runs":          {doing: supervise.Wait, parked: true},
	} {
		l.state.Doing, l.state.Agent.Frozen, l.state.Agent.Running = tc.doing, tc.frozen, !tc.parked
		l.warnings.changed(time.Now())
		if _, err := l.forewarn(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if later := l.warnings.due != nil; later != tc.later {
			t.Errorf("%s: another look follows: %t", name, later)
		}
	}
}
