// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// longEnough an attempt must have lived for its loss not to count as one in a row.
const longEnough = 10 * time.Minute

// freeEnds is how many pods of a Feature may end by themselves before each further one spends a retry: a node that restarts without
// warning looks like that, and so does a container that used too much memory.
const freeEnds = 3

// situate adds to what is remembered what the facts say: a new attempt, the pod that speaks for it, its end, and what
// was reported. Each of these is a function of the situation that the one before it found.
func situate(o Observed, now time.Time) situation {
	return (situation{o: o, now: now, m: o.Memory.clone()}).edited().adopt().strategy().pin().waited().conclude().rollUp()
}

// edited begins the count of failures in tasks again if the spec has changed since the status was written. A report that came with the change is
// counted after that.
func (s situation) edited() situation {
	if s.o.Memory.ObservedGeneration != s.o.Spec.Generation {
		s.m.TaskFailures = 0
	}
	return s
}

// adopt makes the newest Job that is seen the current attempt. It is the only way in which attempts advance: the process
// that made the Job may have died before it noted it.
func (s situation) adopt() situation {
	newest := -1
	for i, j := range s.o.Jobs {
		if j.Attempt > s.m.Attempt && (newest < 0 || j.Attempt > s.o.Jobs[newest].Attempt) {
			newest = i
		}
	}
	if newest < 0 {
		return s
	}
	if s.active() {
		// The newer Job was only made because this attempt had ended.
		s = s.fold()
	}
	job := s.o.Jobs[newest]
	errand, granted, answers := s.madeFor(job)
	s.granted = granted
	m := s.m.clone()
	m.Requests = append(m.Requests, answers...)
	if len(answers) > 0 && !errand { // a user has asked for it
		m.Unserved, m.Unordered, m.TaskFailures = nil, 0, 0
	}
	m.Attempt = job.Attempt
	m.Job = &JobMemory{Name: job.Name, Run: job.Run, Mode: job.Mode, Errand: errand, StartedAt: job.Created,
		Strategy: s.o.Spec.Strategy, StrategyReason: s.o.Spec.StrategyReason}
	if m.StartedAt.IsZero() {
		m.StartedAt = job.Created
	}
	if m.Phase == Failed && !errand {
		m.Phase, m.FinishedAt = Preparing, time.Time{}
	}
	s.m = m
	return s
}

// strategy of an attempt whose Job was seen first by a version that did not note it. Only a choice is noted, so that an upgrade writes nothing: what a
// policy or the Feature names stands there.
func (s situation) strategy() situation {
	if !s.active() || s.m.Job.Strategy != "" || s.o.Spec.StrategyReason == "" {
		return s
	}
	s.m = s.m.clone()
	s.m.Job.Strategy, s.m.Job.StrategyReason = s.o.Spec.Strategy, s.o.Spec.StrategyReason
	return s
}

// madeFor reports whether a Job that is seen for the first time was made for an errand, which requests to retry were
// granted, and which are answered because it was made: all from the facts on which it was made.
func (s situation) madeFor(job Job) (errand bool, granted []string, answers []RequestResult) {
	if job.Run == RunSeal && s.m.Job != nil {
		if s.m.Job.Errand && s.final() == nil {
			return true, nil, nil // The one before was lost.
		}
		next := s.wantedRun()
		if next.granted {
			granted = s.openRetries()
		}
		if next.run != RunSeal {
			return true, granted, s.refused(next.refusal)
		}
	}
	return false, granted, s.answers(s.openRetries(), RequestDone, fmt.Sprintf("Attempt %d has started.", job.Attempt))
}

// pin chooses the one pod that may speak for the attempt.
func (s situation) pin() situation {
	job := s.job()
	if !s.active() || job == nil {
		return s
	}
	var mine, others []Pod
	for _, p := range s.o.Pods {
		if p.JobUID != job.UID {
			continue
		}
		mine = append(mine, p)
		if p.UID != s.m.Job.PodUID {
			others = append(others, p)
		}
	}
	switch {
	case len(mine) == 0 || len(mine) == 1 && len(others) == 0:
	case !s.o.Live:
		s.strangers = mine
	case s.m.Job.PodUID == "" && len(mine) == 1:
		s.m = s.m.clone()
		s.m.Job.PodName, s.m.Job.PodUID = mine[0].Name, mine[0].UID
	default:
		// A Job of ours has one pod. With two it cannot be known which one the volumes belong to.
		s.strangers = others
	}
	return s
}

// waited notes the end of the wait for the pod when the pod says that it has started: a deadline counts from there on, whether or not anything else is written.
// A wait for a user begins after that.
func (s situation) waited() situation {
	p := s.pod()
	if !s.active() || p == nil || s.m.Job.WaitingSince.IsZero() || !p.StartedAt.After(s.m.Job.WaitingSince) {
		return s
	}
	m := s.m.clone()
	*m.Job = s.metered(false)
	s.m = m
	return s
}

// conclude notes the end of the attempt, once: by its final report, or because a live read shows that its pod is gone.
func (s situation) conclude() situation {
	if s.active() && (s.final() != nil || s.gone() && s.o.Live) {
		return s.fold()
	}
	return s
}

// fold counts the attempt's time and outcome.
func (s situation) fold() situation {
	m := s.m.clone()
	*m.Job = s.metered(false)
	m.Job.EndedAt = s.now
	if m.Job.Run == RunAgent {
		m.ActiveSeconds += int64(m.Job.worked(s.now) / time.Second)
	}
	f := s.final()
	p := s.pod()
	if f == nil && p != nil {
		s.fate = p.Fate
	}
	itself := f == nil && p != nil && p.ByItself && m.Job.Run.untrusted() && m.Job.StopRequestedAt.IsZero()
	if itself || f != nil && s.unanswered(f) {
		// An agent, or what a gate runs, can have its own pod end: by its memory, for example. It can also keep the watchdog from a result of the gate.
		if m.Unordered++; m.Unordered > freeEnds {
			m.Failures++
		}
	}
	switch {
	case f == nil && !m.Job.StopRequestedAt.IsZero():
		// It had orders to end, and has ended; only its final report is missing.
	case f == nil:
		m.Lost = s.lost()
	case s.unanswered(f):
		m.Lost = s.lost()
		m = m.settled(s, f)
	case m.Job.Run == RunSeal && f.Outcome == protocol.OutcomeProving:
		// It only says which gate is next: pods of gates that are lost in a row stay lost in a row.
		m = m.settled(s, f)
	default:
		m.Lost = 0
		m = m.settled(s, f)
	}
	s.m = m
	return s
}

// lost counts the attempt as one more that is lost in a row.
func (s situation) lost() int {
	if s.now.Sub(s.m.Job.StartedAt) >= longEnough {
		return 1
	}
	return s.m.Lost + 1
}

// unanswered says whether the pod of a gate ended with a report and without a result of its gate.
func (s situation) unanswered(f *Final) bool {
	return s.m.Job.Run == RunGate && f.Outcome == protocol.OutcomeProving && f.Reason != protocol.ReasonProving
}

// rollUp copies what the watchdog reports into the Feature's own status. Nothing that is known is ever forgotten: a new
// attempt reports from nothing.
func (s situation) rollUp() situation {
	s.m.ObservedGeneration, s.m.Branch = s.o.Spec.Generation, s.o.Spec.Branch
	if s.o.Policy.Hash != "" {
		s.m.Policy = s.o.Policy
	}
	r := s.o.Run
	if r == nil {
		return s
	}
	if r.Head != "" {
		s.m.Head = r.Head
	}
	if f := s.final(); f != nil && f.Head != "" {
		s.m.Head = f.Head
	}
	if r.Checkpoint != nil && r.Counts.Total >= s.m.Checkpoints.Total {
		s.m.LastCheckpoint = r.Checkpoint.Name
		s.m.Checkpoints, s.m.Rollbacks = r.Counts, r.Rollbacks
	}
	if r.LastValidCheckpoint != "" {
		s.m.LastValidCheckpoint = r.LastValidCheckpoint
	}
	return s
}
