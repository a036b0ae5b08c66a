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
		if l.warnings.due != nil {
			t.Errorf("%s: it looks again and again, as long as that lasts", name)
		}
		l.after(t.Context(), nil)
		if l.warnings.due != nil {
			t.Errorf("%s: another look is due before it has ended", name)
		}
		l.state.Doing, l.state.Agent.Frozen, l.state.Agent.Running = supervise.Wait, false, true
		l.after(t.Context(), nil)
		if later := l.warnings.due != nil; later != tc.later {
			t.Errorf("%s: another look follows: %t", name, later)
		}
		l.warnings.due = nil
	}
}
