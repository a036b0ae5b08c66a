// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// running is a Feature whose first attempt works.
func running() Observed {
	return Observed{
		Live: true,
		Spec: Spec{Name: "login", Generation: 1, Retries: 3, Branch: "tidewaiter/login"},
		Memory: Memory{
			Phase: Running, Attempt: 1, StartedAt: noon.Add(-time.Hour),
			Job: &JobMemory{Name: "login-1", Run: RunAgent, PodName: "login-1-abc", PodUID: "pod-1", StartedAt: noon.Add(-time.Hour)},
		},
		Run:  &Run{Epoch: 1, WorkspaceReady: true, AgentRunning: true, Connected: true, ConnectionChangedAt: noon.Add(-time.Hour)},
		Jobs: []Job{{Name: "login-1", UID: "job-1", Attempt: 1, Run: RunAgent, Created: noon.Add(-time.Hour)}},
		Pods: []Pod{{Name: "login-1-abc", UID: "pod-1", JobUID: "job-1", Started: true}},
		// Compared, so that what is decided then is seen.
		Areas: &Areas{},
	}
}

// TestAPodsOwnWordEndsTheWaitForIt: the wait ended when the first container started, however late the controller notes it; a wait for a person ends when it is noted.
func TestAPodsOwnWordEndsTheWaitForIt(t *testing.T) {
	for name, tc := range map[string]struct {
		since, started time.Time
		want           int64
	}{
		"the pod's start is known":   {since: noon.Add(-time.Minute), started: noon.Add(-50 * time.Second), want: 10},
		"nobody knows it":            {since: noon.Add(-time.Minute), want: 60},
		"it started before the wait": {since: noon.Add(-time.Minute), started: noon.Add(-time.Hour), want: 60},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Memory.Job.WaitingSince, o.Pods[0].StartedAt = tc.since, tc.started
			if got := Next(o, noon).Memory.Job; got.WaitedSeconds != tc.want || !got.WaitingSince.IsZero() {
				t.Errorf("waited %d s, since %s, want %d s", got.WaitedSeconds, got.WaitingSince, tc.want)
			}
		})
	}
}

// TestADeadlineCountsFromThePodsStart though the end of the wait was not written, because nothing else was: a watchdog that reaches no intake reports nothing.
func TestADeadlineCountsFromThePodsStart(t *testing.T) {
	o := running()
	o.Spec.Deadline, o.Run = 30*time.Minute, nil
	o.Memory.Job.StartedAt, o.Memory.Job.WaitingSince, o.Pods[0].StartedAt = noon, noon, noon.Add(time.Minute)
	if d := Next(o, noon.Add(30*time.Minute)); d.Recheck > time.Minute || d.Memory.Job.StopRequestedAt != (time.Time{}) {
		t.Errorf("before its time: looked at again after %s, asked to stop at %s", d.Recheck, d.Memory.Job.StopRequestedAt)
	}
	if d := Next(o, noon.Add(32*time.Minute)); d.Memory.Condition(ConditionSucceeded).Reason != protocol.ReasonDeadlineExceeded {
		t.Errorf("31 minutes after the pod's start: %v", d.Memory.Condition(ConditionSucceeded))
	}
}

// TestAnAgentThatHasNotBegunHasNotExited: the workspace is laid out, and its first task is to come.
func TestAnAgentThatHasNotBegunHasNotExited(t *testing.T) {
	o := running()
	o.Run.AgentRunning = false
	for ran, want := range map[bool]string{false: ReasonPreparing, true: ReasonAgentExited} {
		o.Run.AgentRan = ran
		if got := Next(o, noon).Memory.Condition(ConditionAgentRunning); got.Status != False || got.Reason != want {
			t.Errorf("an agent has run: %t, and the condition is %v, want %s", ran, got, want)
		}
	}
}

func TestNextActs(t *testing.T) {
	type acts struct {
		Needs                       Need
		EnsureDependencies, Release bool
		Start                       *Start
		DeleteJobs, DeletePods      []Object
		Renew                       bool
		Unlock                      []string
	}
	job, pod := Object{"login-1", "job-1"}, Object{"login-1-abc", "pod-1"}
	tests := map[string]struct {
		change func(*Observed)
		want   acts
	}{
		"a running attempt is kept up": {change: func(*Observed) {}, want: acts{EnsureDependencies: true}},
		"a cache without the pod is not believed": {
			change: func(o *Observed) { o.Live, o.Pods = false, nil },
			want:   acts{Needs: NeedLive},
		},
		"a pod that lingers without its Job keeps the next attempt from starting": {
			change: func(o *Observed) {
				o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeSuspended}
				o.Memory.Job.EndedAt = noon.Add(-2 * time.Minute)
				o.Jobs, o.Pods[0].Ended = nil, true
			},
			want: acts{DeletePods: []Object{pod}},
		},
		"a pod that is going is waited for": {
			change: func(o *Observed) {
				o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeSuspended}
				o.Memory.Job.EndedAt = noon.Add(-2 * time.Minute)
				o.Jobs, o.Pods[0].Deleting = nil, true
			},
		},
		"nothing is left: the next attempt": {
			change: func(o *Observed) {
				o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeSuspended}
				o.Memory.Job.EndedAt = noon
				o.Jobs, o.Pods = nil, nil
			},
			want: acts{Needs: NeedJob, Start: &Start{Attempt: 2, Run: RunAgent}},
		},
		"a final report of another epoch says nothing": {
			change: func(o *Observed) { o.Run.Final = &Final{Epoch: 7, Outcome: protocol.OutcomeDelivered} },
			want:   acts{EnsureDependencies: true},
		},
		"a second pod of the Job is ended": {
			change: func(o *Observed) {
				o.Pods = append(o.Pods, Pod{Name: "login-1-xyz", UID: "pod-2", JobUID: "job-1", Started: true})
			},
			want: acts{EnsureDependencies: true, DeletePods: []Object{{"login-1-xyz", "pod-2"}}},
		},
		"of two pods that are not known, none may speak": {
			change: func(o *Observed) {
				o.Memory.Job.PodName, o.Memory.Job.PodUID = "", ""
				o.Pods = append(o.Pods, Pod{Name: "login-1-xyz", UID: "pod-2", JobUID: "job-1", Started: true})
			},
			want: acts{EnsureDependencies: true, DeletePods: []Object{pod, {"login-1-xyz", "pod-2"}}},
		},
		"the first pod that a cache shows may not be the only one": {
			change: func(o *Observed) {
				o.Live, o.Memory.Job.PodName, o.Memory.Job.PodUID = false, "", ""
			},
			want: acts{Needs: NeedLive},
		},
		"a Job of an older attempt is ended": {
			change: func(o *Observed) {
				o.Jobs = append(o.Jobs, Job{Name: "login-0", UID: "job-0", Attempt: 0, Run: RunAgent})
			},
			want: acts{EnsureDependencies: true, DeleteJobs: []Object{{"login-0", "job-0"}}},
		},
		"a pod of no Job is ended": {
			change: func(o *Observed) { o.Pods = append(o.Pods, Pod{Name: "old", UID: "pod-0", JobUID: "job-0"}) },
			want:   acts{EnsureDependencies: true, DeletePods: []Object{{"old", "pod-0"}}},
		},
		"a Job that is going is waited for": {
			change: func(o *Observed) {
				o.Jobs = append(o.Jobs, Job{Name: "login-0", UID: "job-0", Attempt: 0, Run: RunAgent, Deleting: true})
			},
			want: acts{EnsureDependencies: true},
		},
		"a Job that was just made is noted before anything else is done": {
			change: func(o *Observed) {
				o.JobMade, o.Pods = true, append(o.Pods, Pod{Name: "old", UID: "pod-0", JobUID: "job-0"})
			},
		},
		"an errand is kept up": {
			change: func(o *Observed) { o.Memory.Job.Run, o.Memory.Job.Errand = RunSeal, true },
			want:   acts{EnsureDependencies: true},
		},
		"a delivery has no deadline": {
			change: func(o *Observed) {
				o.Spec.Deadline, o.Memory.ActiveSeconds, o.Memory.Job.Run = time.Second, 5, RunSeal
			},
			want: acts{EnsureDependencies: true},
		},
		"a deadline that is raised after it was over takes nothing back": {
			change: func(o *Observed) {
				o.Spec.Deadline, o.Memory.Phase, o.Memory.Job.StopRequestedAt = 2*time.Hour, Failed, noon.Add(-time.Second)
			},
		},
		"a pod that lost its Job is ended": {
			change: func(o *Observed) { o.Jobs = nil },
			want:   acts{DeletePods: []Object{pod}},
		},
		"the pod that speaks is known by its uid": {
			change: func(o *Observed) {
				o.Pods = append([]Pod{{Name: "old", UID: "pod-0", JobUID: "job-0", Ended: true}}, o.Pods...)
			},
			want: acts{EnsureDependencies: true, DeletePods: []Object{{"old", "pod-0"}}},
		},
		"a Job that ended is not over while pods of it work": {
			change: func(o *Observed) {
				o.Memory.Job.PodName, o.Memory.Job.PodUID, o.Jobs[0].Ended = "", "", true
				o.Pods = append(o.Pods, Pod{Name: "login-1-xyz", UID: "pod-2", JobUID: "job-1", Started: true})
			},
			want: acts{EnsureDependencies: true, DeletePods: []Object{pod, {"login-1-xyz", "pod-2"}}},
		},
		"a cache that shows an open network ends no agent": {
			change: func(o *Observed) { o.Live, o.Isolation = false, Isolation{Enforce: true, TooMany: 1000} },
			want:   acts{Needs: NeedLive},
		},
		"nor does one that shows it closed let an agent go on that was asked to end": {
			change: func(o *Observed) { o.Live, o.Memory.Job.StopRequestedAt = false, noon },
			want:   acts{Needs: NeedLive},
		},
		"an open network does not end a delivery": {
			change: func(o *Observed) {
				o.Memory.Job.Run, o.Isolation = RunSeal, Isolation{Enforce: true, TooMany: 1000}
			},
			want: acts{EnsureDependencies: true},
		},
		"a pod that works on after the delivery has its minute": {
			change: func(o *Observed) { o.Memory.Phase, o.Memory.Job.EndedAt = Delivered, noon.Add(-59*time.Second) },
		},
		"and is then ended": {
			change: func(o *Observed) { o.Memory.Phase, o.Memory.Job.EndedAt = Delivered, noon.Add(-60*time.Second) },
			want:   acts{DeleteJobs: []Object{job}, DeletePods: []Object{pod}},
		},
		"a lock is not renewed before its time": {
			change: func(o *Observed) { o.Locks.Held, o.Locks.Renew = []string{"db"}, noon.Add(time.Second) },
			want:   acts{EnsureDependencies: true},
		},
		"a lock is renewed when it is time": {
			change: func(o *Observed) { o.Locks.Held, o.Locks.Renew = []string{"db"}, noon },
			want:   acts{EnsureDependencies: true, Renew: true},
		},
		"what no status names is freed": {
			change: func(o *Observed) {
				o.Memory.Phase, o.Memory.Job.EndedAt, o.Jobs, o.Pods = Delivered, noon, nil, nil
				o.Locks.Held, o.Locks.Renew = []string{"db"}, noon
			},
			want: acts{Unlock: []string{"db"}},
		},
		"but not before the status stopped naming it": {
			change: func(o *Observed) {
				o.Memory.Phase, o.Memory.Job.EndedAt, o.Memory.Locks, o.Jobs, o.Pods = Delivered, noon, []string{"db"}, nil, nil
				o.Locks.Held = []string{"db"}
			},
		},
		"a lock that no status names stays while the others are taken": {
			change: func(o *Observed) {
				o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeSuspended}
				o.Memory.Job.EndedAt, o.Jobs, o.Pods = noon, nil, nil
				o.Locks = Locks{Wanted: []string{"api", "db"}, Held: []string{"db"}}
			},
			want: acts{Needs: NeedLocks},
		},
		"locks that were just taken stay for the attempt": {
			change: func(o *Observed) {
				o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeSuspended}
				o.Memory.Job.EndedAt, o.Jobs, o.Pods = noon, nil, nil
				o.Locks = Locks{Wanted: []string{"db"}, Held: []string{"db"}, Taken: true}
			},
			want: acts{Needs: NeedJob, Start: &Start{Attempt: 2, Run: RunAgent}},
		},
		"deletion leaves a pod that works its minute": {
			change: func(o *Observed) { o.Spec.DeletedAt = noon.Add(-59 * time.Second) },
		},
		"also one whose Job was deleted first": {
			change: func(o *Observed) { o.Spec.DeletedAt, o.Jobs = noon.Add(-59*time.Second), nil },
		},
		"and then ends it": {
			change: func(o *Observed) { o.Spec.DeletedAt = noon.Add(-60 * time.Second) },
			want:   acts{DeleteJobs: []Object{job}, DeletePods: []Object{pod}},
		},
		"a deleted Feature whose pods ended is let go": {
			change: func(o *Observed) { o.Spec.DeletedAt, o.Jobs[0].Ended, o.Pods[0].Ended = noon, true, true },
			want:   acts{Release: true},
		},
		"but not while a Job may make another": {
			change: func(o *Observed) { o.Spec.DeletedAt, o.Pods = noon, nil },
			want:   acts{DeleteJobs: []Object{job}},
		},
		"a deleted Feature is only let go on live facts": {
			change: func(o *Observed) { o.Spec.DeletedAt, o.Live, o.Jobs, o.Pods = noon, false, nil, nil },
			want:   acts{Needs: NeedLive},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := running()
			tc.change(&o)
			d := Next(o, noon)
			got := acts{d.Needs, d.EnsureDependencies, d.Release, d.Start, d.DeleteJobs, d.DeletePods, d.RenewLocks, d.Unlock}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("acts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAJobAfterTheDeliveryIsEnded: whoever made it, that it shall end is noted first.
func TestAJobAfterTheDeliveryIsEnded(t *testing.T) {
	o := running()
	o.Memory.Phase, o.Memory.Job.EndedAt, o.Pods = Delivered, noon.Add(-time.Hour), nil
	o.Jobs = []Job{{Name: "login-2", UID: "job-2", Attempt: 2, Run: RunAgent, Created: noon}}
	d := Next(o, noon)
	if d.Memory.Phase != Delivered || d.Memory.Job.StopRequestedAt != noon || len(d.DeleteJobs) > 0 {
		t.Fatalf("%s, asked to end at %s, deletes %v", d.Memory.Phase, d.Memory.Job.StopRequestedAt, d.DeleteJobs)
	}
	o.Memory = d.Memory
	if d = Next(o, noon.Add(stopGrace)); d.Memory.Phase != Delivered || !slices.Equal(d.DeleteJobs, []Object{{"login-2", "job-2"}}) {
		t.Errorf("%s, deletes %v", d.Memory.Phase, d.DeleteJobs)
	}
}

func TestConditionsAreAllThereFromTheStart(t *testing.T) {
	d := Next(Observed{Spec: Spec{Name: "login", Suspend: true}}, noon)
	for _, name := range []string{
		ConditionAccepted, ConditionWorkspaceReady, ConditionAgentRunning, ConditionSupervised, ConditionIsolated, ConditionLocksHeld, ConditionAreasDisjoint, ConditionCheckpointsValid,
		ConditionWithinBudget, ConditionReadyToMerge, ConditionDelivered, ConditionAgentStalled, ConditionAgentLooping, ConditionContextPressure,
		ConditionCascadeFailure, ConditionPaceEscalated, ConditionSucceeded, ConditionReconciling, ConditionStalled,
	} {
		if d.Memory.Condition(name).Status == "" {
			t.Errorf("condition %s is missing", name)
		}
	}
}

// TestAPolicySuspends: a Feature that a policy suspends names it, before its first attempt and while its agent is asked to end.
func TestAPolicySuspends(t *testing.T) {
	spec := Spec{Name: "login", SuspendedBy: "system/stop"}
	d := Next(Observed{Spec: spec}, noon)
	c := d.Memory.Condition(ConditionSucceeded)
	if d.Start != nil || d.Memory.Phase != Suspended || c.Reason != protocol.ReasonSuspendedByPolicy || !strings.Contains(c.Message, "system/stop") {
		t.Errorf("starts %v, %s, %+v", d.Start, d.Memory.Phase, c)
	}
	if !slices.ContainsFunc(d.Events, func(e Event) bool {
		return e.Reason == protocol.ReasonSuspendedByPolicy && strings.Contains(e.Message, "system/stop")
	}) {
		t.Errorf("events %+v", d.Events)
	}
	o := running()
	o.Spec.SuspendedBy = "system/stop"
	if d := Next(o, noon); len(d.DeleteJobs) > 0 || d.Memory.Job.StopRequestedAt.IsZero() {
		t.Errorf("an agent that can be told to end is killed: %+v", d)
	}
	// Intake gives no orders under a policy that it cannot read.
	o.Refusal = &Refusal{Reason: ReasonPolicyInvalid, Message: "SupervisorPolicy system/stop cannot be used", ByUser: true}
	if d := Next(o, noon); len(d.DeleteJobs) == 0 {
		t.Errorf("an agent that cannot be told to end goes on: %+v", d)
	}
	if at := suspendingSummary(spec); !strings.Contains(at.message, "system/stop") {
		t.Errorf("message %q", at.message)
	}
}

// TestSilenceIsSaid beside what the newest checkpoint has found, once, and ends with the agent's word.
func TestSilenceIsSaid(t *testing.T) {
	for _, verdict := range []string{verdictValid, verdictInvalid, "Unchanged"} {
		o := running()
		o.Run.Checkpoint = &Checkpoint{Name: "login-1", Verdict: verdictValid}
		o.Memory = Next(o, noon).Memory
		o.Run.Checkpoint = &Checkpoint{Name: "login-2", Verdict: verdict, Message: "a.md is outside."}
		before := Next(o, noon).Memory.Condition(ConditionCheckpointsValid)
		o.Run.Unacknowledged = []string{"rule areas at checkpoint login-1", "rule secrets at checkpoint login-1"}
		for range 2 {
			o.Memory = Next(o, noon).Memory
			if c := o.Memory.Condition(ConditionCheckpointsValid); c.Status != before.Status ||
				c.Message != before.Message+unacknowledged+"rule areas at checkpoint login-1, rule secrets at checkpoint login-1." {
				t.Errorf("%s: %+v", verdict, c)
			}
		}
		o.Run.Unacknowledged = nil
		if evil := "Rule areas: a" + unacknowledged + "b.md is outside. Move it."; verdict == verdictInvalid {
			named := o
			run := *o.Run
			run.Checkpoint, named.Run = &Checkpoint{Name: "login-3", Verdict: verdict, Message: evil}, &run
			if c := Next(named, noon).Memory.Condition(ConditionCheckpointsValid); !strings.HasSuffix(c.Message, evil) {
				t.Errorf("a file's name cuts the message: %q", c.Message)
			}
		}
		if c := Next(o, noon).Memory.Condition(ConditionCheckpointsValid); c != before {
			t.Errorf("%s: after its word %+v, before %+v", verdict, c, before)
		}
	}
}

// TestAnomalies: what the watchdog sees becomes conditions with the evidence, and ends with the agent.
func TestAnomalies(t *testing.T) {
	o := running()
	o.Run.Anomalies = map[string]string{ConditionAgentLooping: "turn 7: Read was called 5 times with the same result"}
	d := Next(o, noon)
	if c := d.Memory.Condition(ConditionAgentLooping); c.Status != True || c.Reason != ReasonRepeating || !strings.Contains(c.Message, "5 times") {
		t.Errorf("%+v", c)
	}
	if c := d.Memory.Condition(ConditionAgentStalled); c.Status != False || c.Reason != ReasonNoAnomaly {
		t.Errorf("%+v", c)
	}
	told := func(events []Event, reason string) bool {
		return slices.ContainsFunc(events, func(e Event) bool { return e.Reason == reason && e.Warning == (reason == ReasonRepeating) })
	}
	if !told(d.Events, ReasonRepeating) || told(d.Events, ReasonNoAnomaly) {
		t.Errorf("events %+v", d.Events)
	}
	o.Memory, o.Run.Anomalies = d.Memory, nil
	if over := Next(o, noon); !told(over.Events, ReasonNoAnomaly) || told(over.Events, ReasonRepeating) {
		t.Errorf("events at its end %+v", over.Events)
	}
	o.Run.Anomalies = map[string]string{ConditionAgentLooping: "again"}
	o.Run.Epoch = 99 // said by an attempt that is not this one
	if c := Next(o, noon).Memory.Condition(ConditionAgentLooping); c.Status != False {
		t.Errorf("%+v", c)
	}
}

// TestNobodyIsBlamedForTheProvider: a stall for which no model answers says so, and what to make of it. It is no reason to give the agent of another kind of
// anomaly.
func TestNobodyIsBlamedForTheProvider(t *testing.T) {
	o := running()
	o.Run.Anomalies = map[string]string{ConditionAgentStalled: "12 model calls in a row were in vain", ConditionAgentLooping: "again"}
	if c := Next(o, noon).Memory.Condition(ConditionAgentStalled); c.Status != True || c.Reason != ReasonNoProgress || strings.Contains(c.Message, "blame") {
		t.Errorf("the agent's own: %+v", c)
	}
	o.Run.Unserved = true
	d := Next(o, noon)
	if c := d.Memory.Condition(ConditionAgentStalled); c.Status != True || c.Reason != protocol.ReasonProviderUnavailable || !strings.Contains(c.Message, "in vain. The agent is not to blame") {
		t.Errorf("the provider's: %+v", c)
	}
	if c := d.Memory.Condition(ConditionAgentLooping); c.Reason != ReasonRepeating {
		t.Errorf("another one: %+v", c)
	}
	told := func(d Decision) bool {
		return slices.ContainsFunc(d.Events, func(e Event) bool {
			return e.Reason == protocol.ReasonProviderUnavailable || e.Reason == ReasonNoAnomaly
		})
	}
	o.Outage = true
	if during := Next(o, noon); !told(d) || told(during) {
		t.Errorf("events alone %+v, during an outage %+v", d.Events, during.Events)
	}
	o.Memory, o.Run.Anomalies, o.Run.Unserved = d.Memory, map[string]string{ConditionAgentLooping: "again"}, false
	if told(Next(o, noon)) {
		t.Error("an event tells that an agent is answered again")
	}
	if c := Next(o, noon).Memory.Condition(ConditionAgentStalled); c.Status != False || c.Reason != ReasonNoAnomaly {
		t.Errorf("over: %+v", c)
	}
}

func TestWhatAPodSaysCannotBreakTheStatus(t *testing.T) {
	o := running()
	o.Run.Fault = &Problem{Reason: "no such\nreason", Message: strings.Repeat("ü", 40_000)}
	for _, c := range Next(o, noon).Memory.Conditions {
		if !reasonFormat.MatchString(c.Reason) {
			t.Errorf("condition %s has reason %q", c.Type, c.Reason)
		}
		if len(c.Message) > maxMessage || !utf8.ValidString(c.Message) {
			t.Errorf("condition %s has a message of %d bytes, valid: %t", c.Type, len(c.Message), utf8.ValidString(c.Message))
		}
	}
}

// TestAnAttemptKeepsItsStrategy: it is what the policy came to when its Job was first seen, whatever the policy comes to since.
func TestAnAttemptKeepsItsStrategy(t *testing.T) {
	o := running()
	o.Memory.Job, o.Memory.Attempt = nil, 0
	o.Jobs = []Job{{Name: "login-1", Attempt: 1, Run: RunAgent, Created: noon}}
	o.Spec.Strategy, o.Spec.StrategyReason = "Shadow", "The plan names the contract."
	o.Memory = Next(o, noon).Memory
	if j := o.Memory.Job; j == nil || j.Strategy != "Shadow" || j.StrategyReason == "" {
		t.Fatalf("the Job is remembered as %+v", j)
	}
	o.Spec.Strategy, o.Spec.StrategyReason = "Direct", "It names none."
	if j := Next(o, noon).Memory.Job; j == nil || j.Strategy != "Shadow" {
		t.Errorf("it runs by another strategy: %+v", j)
	}
}

// TestAnAttemptOfAnEarlierVersionIsGivenItsStrategy: nobody noted it when its Job was made. It is decided once all the same.
func TestAnAttemptOfAnEarlierVersionIsGivenItsStrategy(t *testing.T) {
	o := running()
	o.Spec.Strategy, o.Spec.StrategyReason = "Direct", "The plan names no contracts."
	o.Memory = Next(o, noon).Memory
	o.Spec.Strategy, o.Spec.StrategyReason = "Shadow", "The plan names the contract."
	if j := Next(o, noon).Memory.Job; j.Strategy != "Direct" || j.StrategyReason != "The plan names no contracts." {
		t.Errorf("it runs by %q: %s", j.Strategy, j.StrategyReason)
	}
}

func TestRollUpNeverForgets(t *testing.T) {
	o := running()
	o.Memory.Head, o.Memory.LastCheckpoint, o.Memory.LastValidCheckpoint, o.Memory.Checkpoints = head, "login-7", "login-6", Counts{Total: 7, Valid: 6}
	o.Memory.Rollbacks = Rollbacks{Total: 2, Request: 2}
	o.Run.Counts, o.Run.Checkpoint = Counts{Total: 2}, &Checkpoint{Name: "login-2"}
	got := Next(o, noon).Memory
	if got.Head != head || got.LastCheckpoint != "login-7" || got.LastValidCheckpoint != "login-6" || got.Checkpoints.Total != 7 || got.Rollbacks.Total != 2 {
		t.Errorf("an attempt that reports from nothing made the Feature forget: %+v", got)
	}
	o.Run.Head, o.Run.Final = "c0ffee", &Final{Epoch: 1, Outcome: protocol.OutcomeSuspended, Head: "facade"}
	if got := Next(o, noon).Memory.Head; got != "facade" {
		t.Errorf("head %s, not that of the last word", got)
	}
	o.Run.Final = nil
	o.Run.Counts, o.Run.Rollbacks = Counts{Total: 8}, Rollbacks{Total: 3, Request: 2, Violation: 1}
	if got := Next(o, noon).Memory; got.Rollbacks != o.Run.Rollbacks {
		t.Errorf("the rollbacks of the run are not kept: %+v", got.Rollbacks)
	}
}

func TestResultsAreKeptButNotForEver(t *testing.T) {
	o := running()
	for i := range 300 {
		id := "r" + strings.Repeat("x", i)
		o.Memory.Requests = append(o.Memory.Requests, RequestResult{ID: id, State: RequestDone})
		if i < 10 {
			o.Spec.Requests = append(o.Spec.Requests, Request{ID: id, Kind: RequestRetry})
		}
	}
	got := Next(o, noon).Memory.Requests
	if len(got) != keptResults {
		t.Errorf("%d results are kept, want %d", len(got), keptResults)
	}
	for i := range 10 {
		if got[i] != o.Memory.Requests[i] {
			t.Errorf("the result of request %d, which the spec still has, is gone: it would be done again", i)
		}
	}
}

func TestLossesInARowWaitLonger(t *testing.T) {
	for lost, want := range map[int]time.Duration{0: 0, 1: 0, 2: 10 * time.Second, 3: 20 * time.Second, 5: 80 * time.Second, 7: 5 * time.Minute, 1000: 5 * time.Minute} {
		o := running()
		o.Jobs, o.Pods = nil, nil
		o.Memory.Lost, o.Memory.Job.EndedAt = lost, noon
		d := Next(o, noon)
		if got := d.Recheck; d.Start == nil && got != want || d.Start != nil && want != 0 {
			t.Errorf("after %d losses: started %t, looks again after %s, want %s", lost, d.Start != nil, got, want)
		}
	}
}

// TestPausesAfterRuns that ended with a final report: two seal runs in a row have a pause between them, and what an errand says again begins none.
func TestPausesAfterRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Observed)
		want   time.Duration
	}{
		"a delivery after an attempt": {func(o *Observed) {
			o.Run.Final.Outcome = protocol.OutcomeReadyToMerge
		}, 0},
		"a delivery after one that settled nothing": {func(o *Observed) {
			o.Run.Final.Outcome, o.Memory.Job.Run = protocol.OutcomeReadyToMerge, RunSeal
		}, sealPause},
		"an errand after an attempt": {func(o *Observed) {
			o.Run.Final.Outcome, o.Spec.Requests = protocol.OutcomeBlocked, []Request{{ID: "back", Kind: RequestRollback}}
		}, 0},
		"an errand after an errand": {func(o *Observed) {
			o.Run.Final.Outcome, o.Spec.Requests = protocol.OutcomeBlocked, []Request{{ID: "back", Kind: RequestRollback}}
			o.Memory.Job.Run, o.Memory.Job.Errand = RunSeal, true
		}, errandPause},
		"an agent after one that failed": {func(o *Observed) {
			o.Run.Final.Outcome, o.Memory.Failures = protocol.OutcomeAgentFailed, 1
		}, firstPause},
		"an agent after an errand that says so again": {func(o *Observed) {
			o.Run.Final.Outcome, o.Memory.Failures = protocol.OutcomeAgentFailed, 1
			o.Memory.Job.Run, o.Memory.Job.Errand = RunSeal, true
		}, 0},
		"an agent after one that was not answered": {func(o *Observed) {
			o.Run.Final.Outcome, o.Memory.Unserved = protocol.OutcomeAgentFailed, &Unserved{Attempts: 1}
			o.Run.Final.Failure = &protocol.Failure{Class: protocol.FailureProvider, Cause: "Status503", Calls: 1}
		}, firstUnserved},
		"an agent after an errand that says that again": {func(o *Observed) {
			o.Run.Final.Outcome, o.Memory.Unserved = protocol.OutcomeAgentFailed, &Unserved{Attempts: 1}
			o.Run.Final.Failure = &protocol.Failure{Class: protocol.FailureProvider, Cause: "Status503", Calls: 1}
			o.Memory.Job.Run, o.Memory.Job.Errand = RunSeal, true
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Run.Final = &Final{Epoch: 1, Reason: protocol.ReasonCheckpointInvalid, Message: "Something was found."}
			o.Memory.Job.EndedAt, o.Jobs, o.Pods = noon, nil, nil
			tc.change(&o)
			o.Memory = Next(o, noon).Memory // where it stands is written
			if d := Next(o, noon); d.Recheck != tc.want || (d.Start == nil) != (tc.want > 0) {
				t.Errorf("starts %+v, looks again after %s, want %s: %+v", d.Start, d.Recheck, tc.want, d.Memory.Condition(ConditionSucceeded))
			}
		})
	}
}

// TestAnErrandLeavesWhatIsWritten: it starts once the status says where the Feature stands, which it leaves as it is.
func TestAnErrandLeavesWhatIsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Observed)
		was    Phase
		reason string
	}{
		"another phase": {func(o *Observed) { o.Spec.Suspend = true }, Pending, protocol.ReasonSuspended},
		"only another reason": {func(o *Observed) {
			o.Isolation = Isolation{Enforce: true, TooMany: 1000}
		}, Blocked, protocol.ReasonNetworkOpened},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeStopped}
			o.Memory.Phase, o.Memory.Job.EndedAt, o.Jobs, o.Pods = tc.was, noon.Add(-time.Hour), nil, nil
			o.Memory.Conditions = []Condition{{ConditionSucceeded, Unknown, "Before", "It was so."}}
			o.Spec.Requests = []Request{{ID: "back", Kind: RequestRollback}}
			tc.change(&o)
			d := Next(o, noon)
			if got := d.Memory.Condition(ConditionSucceeded).Reason; d.Start != nil || got != tc.reason || d.Recheck != leastRecheck {
				t.Fatalf("starts %+v, says %s, looks again after %s", d.Start, got, d.Recheck)
			}
			o.Memory = d.Memory
			if d := Next(o, noon); d.Start == nil || d.Start.Run != RunSeal {
				t.Errorf("starts %+v once it is written: %+v", d.Start, d.Memory.Condition(ConditionSucceeded))
			}
		})
	}
}

// TestTheNewestJobIsTheAttempt, whatever became of the numbers between: a status that was restored is older than its Jobs.
func TestTheNewestJobIsTheAttempt(t *testing.T) {
	o := running()
	o.Jobs = append(o.Jobs, Job{Name: "login-5", UID: "job-5", Attempt: 5, Run: RunAgent, Created: noon}, Job{Name: "login-4", UID: "job-4", Attempt: 4, Run: RunAgent, Created: noon})
	d := Next(o, noon)
	if d.Memory.Attempt != 5 || d.Memory.Job.Name != "login-5" || !slices.Equal(d.DeleteJobs, []Object{{"login-1", "job-1"}, {"login-4", "job-4"}}) {
		t.Errorf("attempt %d, Job %s, deletes %v", d.Memory.Attempt, d.Memory.Job.Name, d.DeleteJobs)
	}
}

// afterLife is running() after its attempt has ended with a final report, and nothing is left of it.
func afterLife(phase Phase, f Final) Observed {
	o := running()
	f.Epoch = 1
	o.Run.Final, o.Memory.Phase, o.Memory.Job.EndedAt, o.Jobs, o.Pods = &f, phase, noon.Add(-time.Hour), nil, nil
	return o
}

// TestAPersonBeginsANewCount of attempts that models did not answer, and of pods that ended by themselves. An errand does not.
func TestAPersonBeginsANewCount(t *testing.T) {
	for _, run := range []RunKind{RunAgent, RunSeal} {
		o := afterLife(Failed, Final{Outcome: protocol.OutcomeAgentFailed, Failure: &protocol.Failure{Class: protocol.FailureProvider, Cause: "Status503", Calls: 1}})
		o.Memory.Unserved, o.Memory.Unordered = &Unserved{Attempts: maxUnserved + 1}, freeEnds
		o.Spec.Deadline, o.Memory.ActiveSeconds = time.Minute, 60 // an errand refuses the retry: the deadline has to be raised first
		o.Spec.Requests = []Request{{ID: "again", Kind: RequestRetry}, {ID: "back", Kind: RequestRollback}}
		o.Jobs = []Job{{Name: "login-2", UID: "job-2", Attempt: 2, Run: run, Created: noon}}
		m := Next(o, noon).Memory
		if m.Attempt != 2 || (m.Unserved == nil) != (run == RunAgent) || (m.Unordered == 0) != (run == RunAgent) || len(m.Requests) != 1 {
			t.Errorf("%s run: attempt %d, not answered %+v, ended by themselves %d, results %+v", run, m.Attempt, m.Unserved, m.Unordered, m.Requests)
		}
	}
}

// TestAFailedFeatureThatIsAskedAgain is at work from the moment its Job is seen, and its time to live begins with its next end. An errand changes neither.
func TestAFailedFeatureThatIsAskedAgain(t *testing.T) {
	failed := func() Observed {
		o := afterLife(Failed, Final{Outcome: protocol.OutcomeAgentFailed, Message: "It gave up."})
		o.Spec.Retries, o.Memory.Failures, o.Memory.FinishedAt = 0, 1, noon.Add(-time.Hour)
		o.Spec.Requests = []Request{{ID: "again", Kind: RequestRetry}}
		return o
	}
	o := failed()
	o.Obstacle = &Refusal{Reason: "Quota", Message: "Full."}
	if m := Next(o, noon).Memory; m.Phase != Pending || !m.FinishedAt.IsZero() {
		t.Errorf("before its Job: %s, finished at %s", m.Phase, m.FinishedAt)
	}
	o = failed()
	o.Jobs = []Job{{Name: "login-2", UID: "job-2", Attempt: 2, Run: RunAgent, Created: noon}}
	if m := Next(o, noon).Memory; m.Phase != Preparing || !m.FinishedAt.IsZero() || !m.Job.StopRequestedAt.IsZero() {
		t.Errorf("with its Job: %s, finished at %s, asked to end at %s", m.Phase, m.FinishedAt, m.Job.StopRequestedAt)
	}
	o = failed()
	o.Spec.Requests = []Request{{ID: "back", Kind: RequestRollback}}
	o.Jobs = []Job{{Name: "login-2", UID: "job-2", Attempt: 2, Run: RunSeal, Created: noon}}
	if m := Next(o, noon).Memory; m.Phase != Failed || m.FinishedAt != noon.Add(-time.Hour) || !m.Job.Errand {
		t.Errorf("with an errand: %s, finished at %s, %+v", m.Phase, m.FinishedAt, m.Job)
	}
}

// TestRunningTime is that of agents, without their waits. One that ends during a wait has the wait behind it.
func TestRunningTime(t *testing.T) {
	o := running()
	o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeStopped}
	o.Memory.ActiveSeconds, o.Memory.Job.WaitingSince, o.Memory.Job.WaitedSeconds = 7, noon.Add(-10*time.Minute), 60
	if m := Next(o, noon).Memory; m.ActiveSeconds != 7+49*60 || m.Job.WaitedSeconds != 11*60 || !m.Job.WaitingSince.IsZero() {
		t.Errorf("an agent that waited: %d s in all, waited %d s, since %s", m.ActiveSeconds, m.Job.WaitedSeconds, m.Job.WaitingSince)
	}
	o.Memory.Job.Run = RunSeal
	if m := Next(o, noon).Memory; m.ActiveSeconds != 7 {
		t.Errorf("with a delivery: %d s", m.ActiveSeconds)
	}
}

// TestAPodThatLostItsJob is named, and the attempt that follows with it.
func TestAPodThatLostItsJob(t *testing.T) {
	o := running()
	o.Jobs = nil
	m := Next(o, noon).Memory
	if c := m.Condition(ConditionSucceeded); m.Phase != Preparing || c.Reason != ReasonPodOrphaned || !strings.Contains(c.Message, "login-1-abc") || !strings.Contains(c.Message, "attempt 2 follows") {
		t.Errorf("%s, %+v", m.Phase, c)
	}
}

// TestADeletionIsAnOrder: a pod that ends because its Feature is deleted is not lost.
func TestADeletionIsAnOrder(t *testing.T) {
	o := running()
	o.Spec.DeletedAt = noon
	o.Memory = Next(o, noon).Memory
	if o.Memory.Job.StopRequestedAt != noon {
		t.Fatalf("asked to end at %s", o.Memory.Job.StopRequestedAt)
	}
	o.Jobs, o.Pods = nil, nil
	if d := Next(o, noon); d.Memory.Lost != 0 || len(d.Events) > 0 && d.Events[0].Reason == ReasonPodLost {
		t.Errorf("lost %d, tells %+v", d.Memory.Lost, d.Events)
	}
}

// TestWhichAttemptALockWasLostOf: a new attempt has the locks that it was made with, whatever the status named before it. An errand takes none back.
func TestWhichAttemptALockWasLostOf(t *testing.T) {
	o := afterLife(Pending, Final{Outcome: protocol.OutcomeStopped})
	o.Memory.Locks, o.Locks = []string{"api"}, Locks{Wanted: []string{"db"}, Held: []string{"db"}}
	o.Jobs = []Job{{Name: "login-2", UID: "job-2", Attempt: 2, Run: RunAgent, Created: noon}}
	if m := Next(o, noon).Memory; !m.Job.StopRequestedAt.IsZero() || m.Condition(ConditionLocksHeld).Status != True || !slices.Equal(m.Locks, []string{"db"}) {
		t.Errorf("an attempt that was just made is asked to end at %s: %+v, %q", m.Job.StopRequestedAt, m.Condition(ConditionLocksHeld), m.Locks)
	}
	for _, reason := range []string{protocol.ReasonLockLost, ReasonLockNotFree} {
		for _, over := range []bool{false, true} {
			o := afterLife(Blocked, Final{Outcome: protocol.OutcomeStopped})
			o.Locks = Locks{Wanted: []string{"db"}, Held: []string{"db"}}
			o.Memory.Conditions = []Condition{{ConditionSucceeded, False, reason, "It was so."}, {ConditionLocksHeld, False, reason, "It was so."}}
			o.Spec.Requests = []Request{{ID: "back", Kind: RequestRollback}}
			o.Jobs = []Job{{Name: "login-2", UID: "job-2", Attempt: 2, Run: RunSeal, Created: noon, Ended: over}}
			if over { // before it was seen
				o.Run.Epoch, o.Run.Final.Epoch, o.Run.Requests = 2, 2, []RequestResult{{ID: "back", State: RequestDone}}
			}
			m := Next(o, noon).Memory
			if c := m.Condition(ConditionSucceeded); !m.Job.Errand || m.Job.EndedAt.IsZero() == over || m.Phase != Blocked || c.Reason != reason || m.Condition(ConditionLocksHeld).Reason != reason {
				t.Errorf("%s, an errand that is over: %t: %s, %+v, %+v", reason, over, m.Phase, c, m.Condition(ConditionLocksHeld))
			}
		}
	}
}

// TestWhichRunFollows where volumes are gone, where no commit is known, and after an errand.
func TestWhichRunFollows(t *testing.T) {
	retry := []Request{{ID: "again", Kind: RequestRetry}}
	for name, tc := range map[string]struct {
		phase  Phase
		final  Final
		change func(*Observed)
		want   RunKind
	}{
		"a push that failed is tried again": {Blocked, Final{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonPushFailed}, func(o *Observed) {
			o.Spec.Requests = retry
		}, RunSeal},
		"without volumes the agent has to work again": {Blocked, Final{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonPushFailed}, func(o *Observed) {
			o.Spec.Requests, o.Spec.Ephemeral = retry, true
		}, RunAgent},
		"no commit is approved by naming none": {ReadyToMerge, Final{Outcome: protocol.OutcomeReadyToMerge}, func(o *Observed) {
			o.Spec.RequireApproval = true
		}, ""},
		"what is approved after an errand is delivered, though a lost agent would wait": {ReadyToMerge, Final{Outcome: protocol.OutcomeReadyToMerge, Head: head}, func(o *Observed) {
			o.Spec.RequireApproval, o.Spec.ApprovedCommit, o.Spec.AskRestart = true, head, true
			o.Memory.Job.Run, o.Memory.Job.Errand = RunSeal, true
		}, RunSeal},
	} {
		t.Run(name, func(t *testing.T) {
			o := afterLife(tc.phase, tc.final)
			tc.change(&o)
			got := RunKind("")
			d := Next(o, noon)
			if d.Start != nil {
				got = d.Start.Run
			}
			if got != tc.want {
				t.Errorf("%q follows, want %q: %+v", got, tc.want, d.Memory.Condition(ConditionSucceeded))
			}
		})
	}
}

// TestARetryWaitsBehindAnErrand that was over before it was seen: the retry was granted before, and stays open.
func TestARetryWaitsBehindAnErrand(t *testing.T) {
	o := running()
	o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonCheckpointInvalid, Message: "Something was found."}
	o.Memory.Phase, o.Memory.Job.EndedAt = Blocked, noon.Add(-time.Minute)
	o.Spec.Requests = []Request{{ID: "again", Kind: RequestRetry}}
	o.Jobs, o.Pods = []Job{{Name: "login-2", UID: "job-2", Attempt: 2, Run: RunSeal, Created: noon, Ended: true}}, nil
	m := Next(o, noon).Memory
	if m.Attempt != 2 || !m.Job.Errand || m.Job.EndedAt.IsZero() {
		t.Fatalf("the errand is not taken up and noted as over: %+v", m.Job)
	}
	if len(m.Requests) > 0 {
		t.Errorf("the retry is answered: %+v", m.Requests)
	}
}

// TestReadyWorkKeepsItsLocks while it waits for an approval, also under a policy that suspends it: its area stays taken as well. A person who
// suspends the Feature itself lets others pass. Where a policy holds a delivery back, area and locks are free.
func TestReadyWorkKeepsItsLocks(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Spec)
		phase  Phase
		want   []string
	}{
		"nobody":                        {change: func(*Spec) {}, phase: ReadyToMerge, want: []string{"db"}},
		"a policy":                      {change: func(s *Spec) { s.SuspendedBy = "system/stop" }, phase: ReadyToMerge, want: []string{"db"}},
		"the person":                    {change: func(s *Spec) { s.Suspend = true }, phase: ReadyToMerge},
		"both":                          {change: func(s *Spec) { s.Suspend, s.SuspendedBy = true, "system/stop" }, phase: ReadyToMerge},
		"a policy, with nobody to wait": {change: func(s *Spec) { s.RequireApproval, s.SuspendedBy = false, "system/stop" }, phase: Suspended},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeReadyToMerge, Head: "c0ffee"}
			o.Memory.Job.EndedAt, o.Memory.Locks = noon, []string{"db"}
			o.Jobs, o.Pods = nil, nil
			o.Locks = Locks{Wanted: []string{"db"}, Held: []string{"db"}}
			o.Spec.RequireApproval = true
			tc.change(&o.Spec)
			d := Next(o, noon)
			if d.Memory.Phase != tc.phase || !slices.Equal(d.Memory.Locks, tc.want) {
				t.Errorf("%s keeps %q, want %s and %q", d.Memory.Phase, d.Memory.Locks, tc.phase, tc.want)
			}
		})
	}
}

// TestADeliveryNeedsNoRoom: it has no agent, so that what keeps agents from starting does not hold it back.
func TestADeliveryNeedsNoRoom(t *testing.T) {
	for name, change := range map[string]func(*Observed){
		"nothing in the way":  func(*Observed) {},
		"a full project":      func(o *Observed) { o.Capacity = Capacity{Limit: 1, Running: 1} },
		"a full cluster":      func(o *Observed) { o.Capacity = Capacity{Total: 1, RunningTotal: 1} },
		"an area of others":   func(o *Observed) { o.Areas = &Areas{Wait: true, Overlap: &Overlap{Who: "Feature other"}} },
		"areas are not known": func(o *Observed) { o.Areas = nil },
		"an open network":     func(o *Observed) { o.Isolation = Isolation{Enforce: true, TooMany: 1000} },
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeReadyToMerge, Head: "c0ffee"}
			o.Memory.Phase, o.Memory.Job.EndedAt, o.Jobs, o.Pods = ReadyToMerge, noon, nil, nil
			change(&o)
			if d := Next(o, noon); d.Needs != NeedJob || d.Start == nil || d.Start.Run != RunSeal {
				t.Errorf("needs %q, starts %+v: %+v", d.Needs, d.Start, d.Memory.Condition(ConditionSucceeded))
			}
		})
	}
}

// TestRoom: who comes first counts like who runs.
func TestRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		c           Capacity
		full, total bool
	}{
		"no limit":                      {c: Capacity{Running: 9, Ahead: 9, RunningTotal: 9, AheadTotal: 9}},
		"the last place":                {c: Capacity{Limit: 3, Running: 1, Ahead: 1, Total: 3, RunningTotal: 1, AheadTotal: 1}},
		"a place that comes to another": {c: Capacity{Limit: 2, Running: 1, Ahead: 1}, full: true},
		"the last of all places":        {c: Capacity{Total: 2, RunningTotal: 1, AheadTotal: 1}, total: true},
		"all work":                      {c: Capacity{Limit: 2, Running: 2, Total: 2, RunningTotal: 2}, full: true, total: true},
	} {
		if full, total := tc.c.full(), tc.c.totalReached(); full != tc.full || total != tc.total {
			t.Errorf("%s: full %t, of all %t, want %t and %t", name, full, total, tc.full, tc.total)
		}
	}
}

// TestWhoWaitsAndItsLocks: work that goes on by itself keeps the locks that its status names. Where it waits for others or for a person, they get them.
func TestWhoWaitsAndItsLocks(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Observed)
		reason string
		want   []string
	}{
		"for its turn":                     {func(o *Observed) { o.Capacity = Capacity{Limit: 1, Running: 1} }, ReasonAtCapacity, []string{"db"}},
		"for what is in its way":           {func(o *Observed) { o.Obstacle = &Refusal{Reason: "Quota", Message: "Full."} }, "Quota", []string{"db"}},
		"for its turn, with a new lock":    {func(o *Observed) { o.Capacity, o.Locks.Held = Capacity{Limit: 1, Running: 1}, []string{"api", "db"} }, ReasonAtCapacity, []string{"db"}},
		"for a policy":                     {func(o *Observed) { o.Refusal = &Refusal{Reason: "PolicyNotFound", Message: "No."} }, "PolicyNotFound", nil},
		"for a person who corrects it":     {func(o *Observed) { o.Refusal = &Refusal{Reason: "SpecInvalid", Message: "No.", ByUser: true} }, "SpecInvalid", nil},
		"for a person who suspended it":    {func(o *Observed) { o.Spec.Suspend = true }, protocol.ReasonSuspended, nil},
		"for a person who has an area":     {func(o *Observed) { o.Areas = &Areas{Wait: true, Overlap: &Overlap{Who: "Feature other"}} }, ReasonWaitingForArea, nil},
		"for a person who closes a way in": {func(o *Observed) { o.Isolation = Isolation{Enforce: true, TooMany: 1000} }, protocol.ReasonNetworkOpened, nil},
		"for another lock": {func(o *Observed) {
			o.Locks.Wanted, o.Locks.Busy = []string{"api", "db"}, []Contender{{Contract: "api", Who: "Feature other"}}
		}, ReasonWaitingForLock, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Run.Final = &Final{Epoch: 1, Outcome: protocol.OutcomeStopped}
			o.Memory.Phase, o.Memory.Job.EndedAt, o.Memory.Locks, o.Jobs, o.Pods = Pending, noon, []string{"db"}, nil, nil
			o.Locks = Locks{Wanted: []string{"db"}, Held: []string{"db"}}
			tc.change(&o)
			d := Next(o, noon)
			if got := d.Memory.Condition(ConditionSucceeded).Reason; got != tc.reason || !slices.Equal(d.Memory.Locks, tc.want) || d.Start != nil {
				t.Errorf("%s keeps %q and starts %v, want %s and %q", got, d.Memory.Locks, d.Start, tc.reason, tc.want)
			}
		})
	}
}
