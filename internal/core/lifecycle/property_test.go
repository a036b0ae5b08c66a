// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestAnyHistory lets everything happen in any order: stale caches, crashes between any two effects, lost pods, pods that
// end in every way, and people who change their mind. Whatever happened, the Feature gets to its end once things calm
// down, and none of the invariants that sim holds was broken on the way.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSim()
		s.spec.RequireApproval = rapid.Bool().Draw(t, "approval")
		if rapid.Bool().Draw(t, "has a deadline") {
			s.spec.Deadline = time.Duration(rapid.IntRange(1, 60).Draw(t, "deadline")) * time.Minute
		}
		s.wanted = rapid.SampledFrom([][]string{nil, {"openapi"}, {"db", "openapi"}}).Draw(t, "contracts")
		past := []snapshot{s.look(false)}
		actions := chaos(t, s, &past)
		actions[""] = func(t *rapid.T) {
			if s.broken != "" {
				t.Fatal(s.broken)
			}
			checkIdempotent(t, s)
			if wrong := s.unseen(); wrong != "" {
				t.Fatal(wrong)
			}
			past = append(past, s.look(false))
		}
		t.Repeat(actions)
		calmDown(t, s)
	})
}

func chaos(t *rapid.T, s *sim, past *[]snapshot) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"reconcile":    func(*rapid.T) { s.reconcile(s.look(false), fate{}) },
		"things go on": func(*rapid.T) { s.settle() },
		"reconcile and die": func(t *rapid.T) {
			s.reconcile(s.look(false), drawFate(t))
		},
		"reconcile on a stale cache": func(t *rapid.T) {
			stale := (*past)[rapid.IntRange(0, len(*past)-1).Draw(t, "from")]
			// Caches of different kinds are of different ages.
			if rapid.Bool().Draw(t, "fresh Jobs") {
				stale.observed.Jobs = s.look(false).observed.Jobs
			}
			if rapid.Bool().Draw(t, "fresh Feature") {
				fresh := s.look(false)
				fresh.observed.Jobs, fresh.observed.Pods = stale.observed.Jobs, stale.observed.Pods
				stale = fresh
			}
			s.reconcile(stale, fate{})
		},
		"pods are made":     func(*rapid.T) { s.makePods() },
		"Jobs go":           func(*rapid.T) { s.collect() },
		"pods go":           func(*rapid.T) { s.terminate() },
		"pods end silently": func(*rapid.T) { s.endPods() },
		"pods are lost":     func(*rapid.T) { s.losePods() },
		"a second pod appears": func(t *rapid.T) {
			if len(s.jobs) == 1 && len(s.pods) == 1 && s.pods[0].JobUID == s.jobs[0].UID && !s.jobs[0].Ended {
				s.serial++
				s.pods = append(s.pods, Pod{Name: "extra", UID: fmt.Sprintf("pod-%d", s.serial), JobUID: s.jobs[0].UID, Started: true})
			}
		},
		"somebody empties status.run": func(t *rapid.T) {
			// Only once it says nothing that is still needed.
			if s.memory.Phase == Delivered {
				s.run = nil
				s.version++
			}
		},
		"the Feature is deleted": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "really") == 0 && s.spec.DeletedAt.IsZero() {
				s.spec.DeletedAt = s.now
				s.spec.Generation++
			}
		},
		"a final report": func(t *rapid.T) {
			outcome := rapid.SampledFrom([]string{
				protocol.OutcomeReadyToMerge, protocol.OutcomeBlocked, protocol.OutcomeAgentFailed, protocol.OutcomeSuspended, protocol.OutcomeStopped, protocol.OutcomeSwitched, protocol.OutcomeProving, protocol.OutcomeUnfinished, "Unheard",
			}).Draw(t, "outcome")
			reason := rapid.SampledFrom([]string{protocol.ReasonCheckpointInvalid, protocol.ReasonPushConflict, protocol.ReasonBreakerOpen}).Draw(t, "reason")
			if s.final(outcome, reason, "Something was found.") && outcome == protocol.OutcomeProving && rapid.Bool().Draw(t, "of a task") {
				s.run.Final.Task, s.run.Final.Gate = "login", rapid.SampledFrom([]string{"task-unit", "task-lint", "task-gone"}).Draw(t, "gate")
			}
		},
		"a task fails": func(t *rapid.T) { s.failedTask(rapid.IntRange(1, 3).Draw(t, "times")) },
		"models do not answer": func(t *rapid.T) {
			s.unserved(rapid.SampledFrom(append(protocol.FailureClasses(), "Strange")).Draw(t, "class"), "Status503")
		},
		"the policy changes": func(t *rapid.T) { s.policy = rapid.SampledFrom([]string{"h1", "h2"}).Draw(t, "policy") },
		"other backends":     func(t *rapid.T) { s.backends = rapid.SampledFrom([]string{"", "b1", "b2"}).Draw(t, "backends") },
		"the work is done":   func(*rapid.T) { s.work() },
		"time passes": func(t *rapid.T) {
			s.now = s.now.Add(time.Duration(rapid.IntRange(1, 1200).Draw(t, "seconds")) * time.Second)
		},
		"spec.suspend changes": func(*rapid.T) {
			s.spec.Suspend = !s.spec.Suspend
			s.spec.Generation++
		},
		"other gates are required": func(t *rapid.T) {
			s.require(rapid.SampledFrom([][]string{nil, {"unit"}, {"unit", "lint"}, {"lint"}}).Draw(t, "gates")...)
			s.spec.Generation++
		},
		"the task gets other gates": func(t *rapid.T) {
			s.gated(rapid.SampledFrom([][]string{nil, {"unit"}, {"unit", "lint"}, {"lint"}}).Draw(t, "gates")...)
			s.spec.Generation++
		},
		"a policy suspends":    func(*rapid.T) { s.spec.SuspendedBy = stopped[len(s.spec.SuspendedBy) == 0] },
		"a retry is asked for": func(*rapid.T) { s.request(RequestRetry) },
		"a rollback is asked for": func(*rapid.T) {
			if len(s.spec.Requests) < 40 {
				s.request(RequestRollback)
			}
		},
		"the commit is approved": func(*rapid.T) {
			s.spec.ApprovedCommit = head
			s.spec.Generation++
		},
		"another has a lock": func(*rapid.T) {
			if l := s.leases.of["db"]; l == nil || l.lease.Holder != s.holder() {
				s.leases.write("db", locks.Holder{Namespace: "shop", Name: "other", UID: "other"}, s.now)
			}
		},
		"a lease is taken away": func(*rapid.T) { delete(s.leases.of, "openapi") },
		"the plan gets a contract": func(*rapid.T) {
			s.wanted = []string{"db", "openapi"}
			s.spec.Generation++
		},
		"the plan loses a contract": func(*rapid.T) {
			s.wanted = []string{"db"}
			s.spec.Generation++
		},
		"others overlap": func(t *rapid.T) {
			s.areas = Areas{Wait: rapid.Bool().Draw(t, "wait"), Overlap: &Overlap{Who: "Feature other"}}
		},
		"nobody overlaps":        func(*rapid.T) { s.areas = Areas{} },
		"a network policy opens": func(t *rapid.T) { s.open(rapid.Bool().Draw(t, "enforce")) },
		"the network is closed":  func(*rapid.T) { s.isolation = Isolation{Enforce: true} },
		"the project is full":    func(t *rapid.T) { s.capacity = Capacity{Limit: 1, Running: rapid.IntRange(0, 1).Draw(t, "running")} },
	}
}

// drawFate draws at which call a controller dies, or does not hear the answer.
func drawFate(t *rapid.T) fate {
	return fate{at: rapid.IntRange(1, 12).Draw(t, "call"), lost: rapid.Bool().Draw(t, "done, but not acknowledged")}
}

// open lets a network policy of others select the agent's pod.
func (s *sim) open(enforce bool) {
	s.isolation = Isolation{Enforce: enforce, Openings: []isolation.Opening{{Policy: "allow-dns", Directions: []isolation.Direction{isolation.Egress}}}}
}

func (s *sim) request(kind RequestKind) {
	s.spec.Requests = append(s.spec.Requests, Request{ID: fmt.Sprintf("r%d", len(s.spec.Requests)), Kind: kind})
	s.spec.Generation++
}

// checkIdempotent: a decision that was written is not taken again.
func checkIdempotent(t *rapid.T, s *sim) {
	before := s.look(true).observed
	first := Next(before, s.now)
	if diff := cmp.Diff(s.look(true).observed, before); diff != "" {
		t.Fatalf("Next changed what it was given:\n%s", diff)
	}
	if acts(first) {
		return
	}
	after := before
	after.Memory = first.Memory
	second := Next(after, s.now)
	for i, c := range Next(after, s.now.Add(time.Second)).Memory.Conditions {
		if was := second.Memory.Conditions[i]; c.Reason == was.Reason && c.Status == was.Status && c.Message != was.Message {
			t.Fatalf("a message changes with the time: %q, then %q", was.Message, c.Message)
		}
	}
	if diff := cmp.Diff(first.Memory, second.Memory); diff != "" {
		t.Fatalf("the same facts lead elsewhere once they are written (-first +second):\n%s", diff)
	}
	if len(second.Events) != 0 {
		t.Fatalf("events are sent again: %+v", second.Events)
	}
}

// stopped is what a policy that suspends leaves in a spec, and one that no longer does.
var stopped = map[bool]string{true: "system/stop"}

// calmDown lets everybody be well-behaved from now on: the Feature is delivered.
func calmDown(t *rapid.T, s *sim) {
	s.spec.Suspend, s.spec.SuspendedBy, s.spec.Deadline, s.spec.ApprovedCommit, s.capacity = false, "", 0, head, Capacity{}
	s.areas, s.isolation = Areas{}, Isolation{Enforce: true}
	s.spec.Generation++
	for range 30 {
		s.settle()
		if s.memory.Phase == Delivered || !s.spec.DeletedAt.IsZero() {
			break
		}
		if s.memory.Phase == Blocked || s.memory.Phase == Failed {
			s.request(RequestRetry)
		}
		s.now = s.now.Add(11 * time.Minute)
		s.settle()
		s.work()
	}
	s.settle()
	if s.broken != "" {
		t.Fatal(s.broken)
	}
	if held := s.lookAtLocks().Held; s.memory.Phase == Delivered && len(held) > 0 && s.working() == 0 {
		t.Fatalf("is delivered and holds %v", held)
	}
	if s.memory.Phase != Delivered && s.spec.DeletedAt.IsZero() {
		t.Fatalf("does not get to its end: %s", s.line())
	}
	if s.spec.DeletedAt.IsZero() {
		s.spec.DeletedAt = s.now
	}
	for range 5 {
		s.settle()
		s.endPods()
		s.now = s.now.Add(2 * time.Minute)
	}
	if !s.released || s.working() > 0 {
		t.Fatalf("is not let go: %s", s.line())
	}
}
