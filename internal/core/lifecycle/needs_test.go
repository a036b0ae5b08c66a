// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestNeedsAreBounded: whatever is observed, and whatever is found once it is gathered, nothing is needed twice.
// Facts are drawn without regard to whether they can be true
// together: stale caches and people make strange worlds.
func TestNeedsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		var asked []Need
		gatheredAlready := map[Need]bool{}
		for {
			d := Next(o, noon)
			if d.Needs == "" {
				break
			}
			if gatheredAlready[d.Needs] {
				t.Fatalf("%s is asked for again, after %v", d.Needs, asked)
			}
			gatheredAlready[d.Needs] = true
			if !slices.Contains(Needs(), d.Needs) {
				t.Fatalf("%q is no need", d.Needs)
			}
			if o.Live == (d.Needs == NeedLive) {
				t.Fatalf("%s is needed where the facts are live: %t", d.Needs, o.Live)
			}
			if asked = append(asked, d.Needs); len(asked) > MaxNeeds {
				t.Fatalf("%d facts are needed: %v", len(asked), asked)
			}
			o = gathered(t, o, d)
		}
	})
}

// TestNeedsOfAStart: what a start needs, in order, with everything in its way that can be; no start needs more.
func TestNeedsOfAStart(t *testing.T) {
	locks := Locks{Wanted: []string{"db"}}
	first := Observed{Spec: Spec{Name: "login"}, Locks: locks}
	lost := running()
	lost.Live, lost.Areas, lost.Locks, lost.Jobs, lost.Pods = false, nil, locks, nil, nil
	for name, tc := range map[string]struct {
		o    Observed
		want []Need
	}{
		"the first attempt":            {first, []Need{NeedLive, NeedAdmission, NeedLocks, NeedJob}},
		"a pod is gone from the cache": {lost, []Need{NeedLive, NeedAdmission, NeedLocks, NeedJob}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []Need
			o := tc.o
			for d := Next(o, noon); d.Needs != "" && len(asked) <= MaxNeeds; d = Next(o, noon) {
				asked = append(asked, d.Needs)
				switch d.Needs {
				case NeedLive:
					o.Live = true
				case NeedAdmission:
					o.Areas = &Areas{}
				case NeedLocks:
					o.Locks.Taken, o.Locks.Held = true, o.Locks.Wanted
				case NeedJob:
					o.Jobs, o.JobMade = []Job{{Name: "made", UID: "made", Attempt: d.Start.Attempt, Run: d.Start.Run, Created: noon}}, true
				}
			}
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

// gathered is what is observed once a need was gathered: anything may be found.
func gathered(t *rapid.T, o Observed, d Decision) Observed {
	switch d.Needs {
	case NeedLive:
		// Everything may look different. A gatherer gives up where spec or attempt do.
		live := anyObserved(t)
		live.Live, live.Spec, live.Memory.Attempt = true, o.Spec, o.Memory.Attempt
		live.Areas, live.Refusal, live.Obstacle, live.Locks.Taken = o.Areas, o.Refusal, o.Obstacle, false
		return live
	case NeedAdmission:
		o.Areas = anyAreas(t)
	case NeedLocks:
		o.Locks = anyLocks(t, o.Locks.Wanted)
		o.Locks.Taken = true
	case NeedJob:
		if rapid.Bool().Draw(t, "obstacle") {
			o.Obstacle = &Refusal{Reason: "Quota", Message: "Full."}
			break
		}
		o.Jobs = append(slices.Clone(o.Jobs), Job{Name: "made", UID: "made", Attempt: d.Start.Attempt, Run: d.Start.Run, Created: noon})
		o.JobMade = true
	}
	return o
}

// mostly draws true four times out of five: most worlds are unremarkable in most ways.
func mostly(t *rapid.T, what string) bool { return rapid.IntRange(0, 4).Draw(t, what) > 0 }

func anyObserved(t *rapid.T) Observed {
	o := Observed{
		Live: rapid.Bool().Draw(t, "live"), Spec: anySpec(t), Memory: anyMemory(t), Run: anyRun(t),
		Locks: anyLocks(t, rapid.SampledFrom([][]string{nil, {"db"}, {"db", "openapi"}}).Draw(t, "wanted")),
	}
	if !mostly(t, "accepted") {
		o.Refusal = &Refusal{Reason: "Refused", Message: "No.", ByUser: rapid.Bool().Draw(t, "by user")}
	}
	if !mostly(t, "ready") {
		o.Obstacle = &Refusal{Reason: "Obstacle", Message: "Wait."}
	}
	if !mostly(t, "room") {
		o.Capacity = Capacity{Limit: 1, Running: 1}
	}
	if !mostly(t, "isolated") {
		o.Isolation = Isolation{Enforce: rapid.Bool().Draw(t, "enforce"), TooMany: 1000}
	}
	if rapid.Bool().Draw(t, "compared") {
		o.Areas = anyAreas(t)
	}
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "jobs") {
		o.Jobs = append(o.Jobs, Job{
			Name: "job", UID: string(rune('a' + i)), Attempt: int64(rapid.IntRange(1, 3).Draw(t, "of attempt")), Run: anyRunKind(t), Created: noon.Add(-time.Hour),
			Ended: rapid.Bool().Draw(t, "Job ended"), Deleting: rapid.Bool().Draw(t, "Job goes"),
		})
	}
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "pods") {
		p := Pod{
			Name: "pod", UID: string(rune('p' + i)), JobUID: rapid.SampledFrom([]string{"a", "b", "x"}).Draw(t, "of Job"),
			Started: rapid.Bool().Draw(t, "started"), Ended: rapid.Bool().Draw(t, "pod ended"), Fate: "Evicted",
		}
		if rapid.Bool().Draw(t, "pod goes") {
			p.Deleting, p.DueBy = true, anyTime(t, "due")
		}
		o.Pods = append(o.Pods, p)
	}
	return o
}

func anyTime(t *rapid.T, what string) time.Time {
	return noon.Add(time.Duration(rapid.SampledFrom([]int{-7200, -600, -61, -1, 0, 30}).Draw(t, what)) * time.Second)
}

func anyRunKind(t *rapid.T) RunKind {
	return rapid.SampledFrom([]RunKind{RunAgent, RunSeal}).Draw(t, "run")
}

func anySpec(t *rapid.T) Spec {
	s := Spec{
		Name: "login", Generation: 2, Retries: 1, Branch: "tidewaiter/login", Mode: "Interactive", Suspend: !mostly(t, "not suspended"),
		Ephemeral: !mostly(t, "volumes stay"), RequireApproval: rapid.Bool().Draw(t, "approval"),
		ApprovedCommit: rapid.SampledFrom([]string{"", head}).Draw(t, "approved"),
	}
	if !mostly(t, "stays") {
		s.DeletedAt = anyTime(t, "deleted")
	}
	if !mostly(t, "no deadline") {
		s.Deadline = time.Minute
	}
	if rapid.Bool().Draw(t, "ttl") {
		ttl := time.Minute
		s.TTLAfterFinished = &ttl
	}
	kinds := []RequestKind{RequestRetry, RequestRollback, RequestCheckpoint, RequestResetBreaker, RequestRelease}
	for i := range rapid.IntRange(0, 2).Draw(t, "requests") {
		s.Requests = append(s.Requests, Request{ID: string(rune('r' + i)), Kind: rapid.SampledFrom(kinds).Draw(t, "kind")})
	}
	return s
}

func anyMemory(t *rapid.T) Memory {
	phases := []Phase{"", Pending, Preparing, Running, AwaitingInput, ReadyToMerge, Delivered, Blocked, Failed, Suspended}
	reasons := []string{ReasonPreparing, ReasonRunning, ReasonWaitingForLock, ReasonWaitingForArea, ReasonLockNotFree, protocol.ReasonLockLost, protocol.ReasonDeadlineExceeded, protocol.ReasonNetworkOpened}
	m := Memory{
		Phase: rapid.SampledFrom(phases).Draw(t, "phase"), Attempt: int64(rapid.IntRange(0, 2).Draw(t, "attempt")),
		Failures: rapid.IntRange(0, 2).Draw(t, "failures"), Lost: rapid.IntRange(0, 2).Draw(t, "lost"),
		Locks:      rapid.SampledFrom([][]string{nil, {"db"}, {"db", "openapi"}}).Draw(t, "noted"),
		FinishedAt: rapid.SampledFrom([]time.Time{{}, noon.Add(-time.Hour)}).Draw(t, "finished"),
		Conditions: []Condition{
			{ConditionSucceeded, Unknown, rapid.SampledFrom(reasons).Draw(t, "reason"), "It was so."},
			{ConditionLocksHeld, False, rapid.SampledFrom(reasons).Draw(t, "locks"), "They were so."},
		},
	}
	if rapid.Bool().Draw(t, "answered") {
		m.Requests = []RequestResult{{ID: "r", State: RequestDone, At: noon}}
	}
	if m.Attempt > 0 && mostly(t, "has a Job") {
		m.Job = &JobMemory{Name: "job", Run: anyRunKind(t), Errand: rapid.Bool().Draw(t, "errand"), StartedAt: noon.Add(-time.Hour)}
		m.Job.PodUID = rapid.SampledFrom([]string{"", "p", "q", "gone"}).Draw(t, "pinned")
		if rapid.Bool().Draw(t, "ended") {
			m.Job.EndedAt = anyTime(t, "ended at")
		}
		if rapid.Bool().Draw(t, "asked to stop") {
			m.Job.StopRequestedAt = anyTime(t, "asked at")
		}
		if rapid.Bool().Draw(t, "waits") {
			m.Job.WaitingSince = anyTime(t, "waits since")
		}
	}
	return m
}

func anyRun(t *rapid.T) *Run {
	if !mostly(t, "reported") {
		return nil
	}
	r := &Run{
		Epoch: int64(rapid.IntRange(1, 2).Draw(t, "epoch")), WorkspaceReady: rapid.Bool().Draw(t, "workspace"), AgentRunning: rapid.Bool().Draw(t, "agent"),
		Connected: rapid.Bool().Draw(t, "connected"), ConnectionChangedAt: anyTime(t, "changed"), Head: head,
	}
	if !mostly(t, "no question") {
		r.Question, r.QuestionID = "Which colour?", "q1"
	}
	if !mostly(t, "no fault") {
		r.Fault = &Problem{Reason: rapid.SampledFrom([]string{protocol.ReasonBreakerOpen, "Broken"}).Draw(t, "fault"), Message: "It is so."}
	}
	if rapid.Bool().Draw(t, "request done") {
		r.Requests = []RequestResult{{ID: "r", State: RequestDone, Message: "Done.", At: noon}, {ID: "s", State: RequestFailed, Message: "No.", At: noon}}
	}
	if rapid.Bool().Draw(t, "final") {
		outcomes := []string{
			protocol.OutcomeReadyToMerge, protocol.OutcomeBlocked, protocol.OutcomeAgentFailed, protocol.OutcomeSuspended, protocol.OutcomeStopped,
			protocol.OutcomeSwitched, protocol.OutcomeDelivered, "Unheard",
		}
		reasons := []string{"", protocol.ReasonCheckpointInvalid, protocol.ReasonPushConflict, protocol.ReasonBreakerOpen, protocol.ReasonHistoryInvalid, protocol.ReasonPushFailed, protocol.ReasonPushRejected, protocol.ReasonAuthenticationFailed}
		r.Final = &Final{
			Epoch: int64(rapid.IntRange(1, 2).Draw(t, "final of")), Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"),
			Reason: rapid.SampledFrom(reasons).Draw(t, "because"), Message: "Something was found", Head: head,
		}
	}
	return r
}

func anyAreas(t *rapid.T) *Areas {
	a := &Areas{Wait: rapid.Bool().Draw(t, "wait")}
	if rapid.Bool().Draw(t, "overlap") {
		a.Overlap = &Overlap{Who: "Feature other", Before: rapid.Bool().Draw(t, "first")}
	}
	return a
}

func anyLocks(t *rapid.T, wanted []string) Locks {
	l := Locks{Wanted: wanted, Held: rapid.SampledFrom([][]string{nil, nil, {"db"}, {"db", "openapi"}}).Draw(t, "held"), Fail: rapid.Bool().Draw(t, "fail")}
	if len(l.Held) > 0 {
		l.Renew = anyTime(t, "renew")
	}
	for _, c := range wanted {
		if !slices.Contains(l.Held, c) && !mostly(t, "free") {
			l.Busy = append(l.Busy, Contender{Contract: c, Who: "Feature other", Before: rapid.Bool().Draw(t, "before")})
		}
	}
	return l
}
