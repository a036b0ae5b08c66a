// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// lose lets the controller reconcile until a call of this name, whose answer is lost.
func (s *sim) lose(t *testing.T, name string) {
	t.Helper()
	wrote, met := false, false
	for c := range s.calls(s.look(false), &wrote) {
		c.lost = c.name == name
		met = met || c.lost
	}
	if !met {
		t.Fatalf("there is no call %q: %s", name, s.line())
	}
	s.round(true)
}

// TestAFailedLookAtOthersStartsNothing: a Feature that waits for the areas of others stays one that waits, though they could not be
// read once.
func TestAFailedLookAtOthersStartsNothing(t *testing.T) {
	s := newSim()
	s.settle()
	s.spec.Suspend = true
	s.spec.Generation++
	s.work()
	s.settle()
	s.spec.Suspend = false
	s.spec.Generation++
	s.areas = Areas{Wait: true, Overlap: &Overlap{Who: "Feature other"}}
	s.lose(t, "look at other Features")
	s.settle()
	if c := s.memory.Condition(ConditionSucceeded); c.Reason != ReasonWaitingForArea || s.memory.Attempt != 1 {
		t.Errorf("it does not wait: %s", s.line())
	}
}

// TestAFailedStartKeepsTheRetry: the request that a start rests on is answered by the start, though the first call for it failed.
func TestAFailedStartKeepsTheRetry(t *testing.T) {
	s := newSim()
	s.spec.Deadline = time.Minute
	s.settle()
	s.report(func(r *Run) { r.WorkspaceReady, r.AgentRunning = true, true })
	s.settle()
	s.now = s.now.Add(2 * time.Minute)
	s.settle()
	s.final(protocol.OutcomeStopped, protocol.ReasonDeadlineExceeded, "")
	s.endPods()
	s.settle()
	s.spec.Deadline = time.Hour
	s.request(RequestRetry)
	for range 5 {
		if n := s.names(s.look(false)); len(s.jobs) == 0 && len(n) > 4 && n[4] == "look at other Features" {
			break
		}
		s.now = s.now.Add(time.Minute)
		s.round(s.reconcile(s.look(false), fate{}))
	}
	s.lose(t, "look at other Features")
	s.settle()
	if r := s.memory.Requests; len(r) != 1 || r[0].State != RequestDone || s.memory.Attempt != 2 {
		t.Errorf("%s: %+v", s.line(), r)
	}
}

// TestAStopIsNotedBeforeThePodGoes: an attempt that was asked to end is not one that was lost.
func TestAStopIsNotedBeforeThePodGoes(t *testing.T) {
	s := newSim()
	s.settle()
	for i := range s.pods {
		s.pods[i].Started = false
	}
	s.spec.Suspend = true
	s.spec.Generation++
	for at := range s.names(s.look(false)) {
		c := s.clone()
		c.round(c.reconcile(c.look(false), fate{at: at + 1}))
		if c.settle(); c.memory.Phase != Suspended || c.memory.Lost != 0 {
			t.Errorf("the process dies before call %d: %s, lost %d", at+1, c.line(), c.memory.Lost)
		}
	}
}

// TestALaggingLeaseTakesNoLock from an attempt, and names no lock that is held as lost.
func TestALaggingLeaseTakesNoLock(t *testing.T) {
	s := newSim()
	s.wanted = []string{"db", "openapi"}
	before := s.look(false).observed.Locks
	s.settle()
	lagging := func() snapshot {
		cached := s.look(false)
		cached.observed.Locks = before
		return cached
	}
	s.leases.write("db", locks.Holder{Namespace: "shop", Name: "other", UID: "other"}, s.now)
	s.settle()
	if s.reconcile(lagging(), fate{}); len(s.memory.Locks) != 1 || s.broken != "" {
		t.Errorf("the status names the locks %v: %s", s.memory.Locks, s.broken)
	}
	s.final(protocol.OutcomeStopped, protocol.ReasonLockLost, "")
	s.endPods()
	s.reconcile(lagging(), fate{})
	if c := s.memory.Condition(ConditionLocksHeld); c.Reason != protocol.ReasonLockLost || strings.Contains(c.Message, "openapi") {
		t.Errorf("%+v", c)
	}
}
