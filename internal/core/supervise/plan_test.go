// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// TestPlanningIsCalledOff: a user who does not want a plan any more does not wait for a provider that is away.
func TestPlanningIsCalledOff(t *testing.T) {
	now := time.Unix(1000, 0)
	o := protocol.Orders{Planning: protocol.PlanningAuto, Tasks: []protocol.Task{{Name: "login"}}}
	s := supervise.State{}.Apply(supervise.Ordered{Orders: o}, now).Apply(supervise.Connected{}, now)
	a := supervise.Next(s, now)
	if a.Kind != supervise.Plan {
		t.Fatalf("first %q", a.Kind)
	}
	o.Planning = ""
	s = s.Begin(a).Apply(supervise.Ordered{Orders: o}, now)
	if a := supervise.Next(s, now); a.Kind != supervise.Cancel {
		t.Errorf("without planning %q", a.Kind)
	}
}
