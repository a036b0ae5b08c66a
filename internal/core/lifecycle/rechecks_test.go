// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestNothingFallsDueUnseen: what only time brings about is never missed. At each moment of each transcript, a decision after which no event comes holds until its own
// recheck; without a recheck it holds for ever.
func TestNothingFallsDueUnseen(t *testing.T) {
	forEachLife(t, func(t *testing.T, l life) int {
		n := 0
		for _, m := range l.moments {
			n++
			if wrong := m.world.unseen(); wrong != "" {
				t.Fatalf("%q, reconcile %d: %s", l.lines[m.line], m.round, wrong)
			}
		}
		return n
	})
}

// unseen says what would fall due before the next look; empty where nothing would.
func (s *sim) unseen() string {
	o := s.look(true).observed
	d := Next(o, s.now)
	if acts(d) || d.RenewLocks || !cmp.Equal(waking(o.Memory), waking(d.Memory)) {
		return "" // an event follows
	}
	o.Memory = d.Memory
	for _, after := range probes(d.Recheck) {
		if due := due(d, Next(o, s.now.Add(after))); due != "" {
			return fmt.Sprintf("it is looked at again after %s (0 is never), and %s later it would %s", d.Recheck, after, due)
		}
	}
	return ""
}

// waking is the part of a status whose change wakes the Feature: see featureChanged in controllers/feature.
func waking(m Memory) Memory {
	m.Conditions, m.ObservedGeneration, m.Policy = nil, 0, PolicyRef{}
	m.Branch, m.Head, m.LastCheckpoint, m.LastValidCheckpoint, m.Checkpoints, m.Rollbacks = "", "", "", "", Counts{}, Rollbacks{}
	return m
}

// probes are times before a recheck; 0 is never.
func probes(recheck time.Duration) []time.Duration {
	switch recheck {
	case 0:
		return []time.Duration{time.Second, 31 * time.Second, 5 * time.Minute, time.Hour, 100 * time.Hour}
	case leastRecheck:
		return nil // It is due now.
	default:
		return []time.Duration{recheck / 2, recheck - time.Millisecond}
	}
}

// due says what a later decision does that the one before it did not; empty where it does nothing.
func due(before, later Decision) string {
	if acts(later) || later.RenewLocks {
		alone := later
		alone.Memory = Memory{}
		return fmt.Sprintf("act: %+v", alone)
	}
	if diff := cmp.Diff(before.Memory, later.Memory); diff != "" {
		return "write (-before +then):\n" + diff
	}
	return ""
}

// TestRechecks: what no event tells of, or an event that may be missed, is looked at again in time.
func TestRechecks(t *testing.T) {
	ended := func(o *Observed, outcome string) {
		o.Run.Final = &Final{Epoch: 1, Outcome: outcome, Reason: protocol.ReasonCheckpointInvalid, Message: "Something was found."}
		o.Memory.Job.EndedAt, o.Jobs, o.Pods = noon.Add(-time.Hour), nil, nil
	}
	for name, tc := range map[string]struct {
		change func(*Observed)
		want   time.Duration
	}{
		"an attempt that works": {func(*Observed) {}, attendRecheck},
		"an attempt whose deadline comes first": {func(o *Observed) {
			o.Spec.Deadline = time.Hour + 5*time.Second
		}, 5 * time.Second},
		"an errand": {func(o *Observed) {
			o.Memory.Job.Run, o.Memory.Job.Errand = RunSeal, true
		}, attendRecheck},
		"a Feature that is refused": {func(o *Observed) {
			ended(o, protocol.OutcomeStopped)
			o.Refusal = &Refusal{Reason: "Refused", Message: "No."}
		}, refusalRecheck},
		"what is in the way": {func(o *Observed) {
			ended(o, protocol.OutcomeStopped)
			o.Obstacle = &Refusal{Reason: "Quota", Message: "Full."}
		}, obstacleRecheck},
		"what is in the way of an errand": {func(o *Observed) {
			ended(o, protocol.OutcomeBlocked)
			o.Memory.Phase, o.Spec.Requests = Blocked, []Request{{ID: "back", Kind: RequestRollback}}
			o.Obstacle = &Refusal{Reason: "Quota", Message: "Full."}
		}, obstacleRecheck},
		"an open network": {func(o *Observed) {
			ended(o, protocol.OutcomeStopped)
			o.Isolation = Isolation{Enforce: true, TooMany: 1000}
		}, networkRecheck},
		"a full project": {func(o *Observed) {
			ended(o, protocol.OutcomeStopped)
			o.Capacity = Capacity{Limit: 1, Running: 1}
		}, capacityRecheck},
		"a full cluster": {func(o *Observed) {
			ended(o, protocol.OutcomeStopped)
			o.Capacity = Capacity{Total: 1, RunningTotal: 1}
		}, capacityRecheck},
		"an area of others": {func(o *Observed) {
			ended(o, protocol.OutcomeStopped)
			o.Memory.Phase, o.Areas = Pending, &Areas{Wait: true, Overlap: &Overlap{Who: "Feature other"}}
		}, areaRecheck},
		"a lock of others": {func(o *Observed) {
			ended(o, protocol.OutcomeStopped)
			o.Locks = Locks{Wanted: []string{"db"}, Busy: []Contender{{Contract: "db", Who: "Feature other"}}}
		}, lockRecheck},
		"a lock of others that an errand waits for": {func(o *Observed) {
			ended(o, protocol.OutcomeBlocked)
			o.Memory.Phase, o.Spec.Requests = Blocked, []Request{{ID: "back", Kind: RequestRollback}}
			o.Memory.Conditions = []Condition{{ConditionSucceeded, False, protocol.ReasonCheckpointInvalid, "It was so."}}
			o.Locks = Locks{Wanted: []string{"db"}, Busy: []Contender{{Contract: "db", Who: "Feature other"}}}
		}, lockRecheck},
		"what a gateway says of models that a policy forbids": {func(o *Observed) {
			ended(o, protocol.OutcomeAgentFailed)
			o.Run.Final.Failure = &protocol.Failure{Class: protocol.FailurePolicy, Cause: "ModelNotAllowed", Calls: 1}
			o.Memory.Job.EndedAt, o.Memory.Unserved = noon, &Unserved{Attempts: 3, Class: protocol.FailurePolicy}
		}, refusalRecheck},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			tc.change(&o)
			if d := Next(o, noon); acts(d) || d.Recheck != tc.want {
				t.Errorf("%s is looked at again after %s, want %s (acts %t)", d.Memory.Condition(ConditionSucceeded).Reason, d.Recheck, tc.want, acts(d))
			}
		})
	}
}
