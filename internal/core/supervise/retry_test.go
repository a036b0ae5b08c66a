// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// A delivery that fails again and again is not tried for ever: the attempt ends, and says what a person has to look at.
func TestADeliveryIsNotTriedForEver(t *testing.T) {
	now := epoch
	s := supervise.State{Seal: true, Tasks: []supervise.Task{{Name: "form", Phase: supervise.Done}}}
	s.Delivery = supervise.Delivery{Push: true, Branch: "b", Head: "c1", Changed: true, Reviewed: true}
	for range 1000 {
		a := supervise.Next(s, now)
		switch a.Kind {
		case supervise.Wait:
			now = a.Until
			continue
		case supervise.Push:
			s = s.Begin(a).Apply(supervise.Undelivered{Fault: protocol.Fault{Reason: protocol.ReasonEgressDenied, Message: "no"}}, now)
			continue
		case supervise.Finish:
			if a.Final.Outcome != protocol.OutcomeBlocked || a.Final.Reason != protocol.ReasonPushFailed {
				t.Errorf("ended with %+v", a.Final)
			}
			if waited := now.Sub(epoch); waited < 30*time.Minute || waited > 2*time.Hour {
				t.Errorf("ended after %s", waited)
			}
			return
		default:
			t.Fatalf("wants %s", a.Kind)
		}
	}
	t.Error("it is tried for ever")
}
