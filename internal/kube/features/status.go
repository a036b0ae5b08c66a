// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/conditions"
)

// Memory is the controller's own part of a status, as it was written last.
func Memory(s v1alpha1.FeatureStatus) lifecycle.Memory {
	m := lifecycle.Memory{
		ObservedGeneration:  s.ObservedGeneration,
		Phase:               lifecycle.Phase(s.Phase),
		Attempt:             s.Attempt,
		Failures:            int(s.Failures),
		Lost:                int(s.Lost),
		Unordered:           int(s.Unordered),
		TaskFailures:        int(s.TaskFailures),
		Branch:              s.Branch,
		Head:                s.Head,
		LastCheckpoint:      s.LastCheckpoint,
		LastValidCheckpoint: s.LastValidCheckpoint,
		Checkpoints:         lifecycle.Counts(s.Checkpoints),
		Rollbacks:           rollbacks(s.Rollbacks),
		Requests:            requestResults(s.ObservedRequests),
		StartedAt:           timeOf(s.StartTime),
		FinishedAt:          timeOf(s.CompletionTime),
		ActiveSeconds:       s.ActiveSeconds,
		Locks:               s.Locks,
	}
	m.Deliveries, m.Heeds = foreignDeliveries(s.Deliveries), heeds(s.Reviewers)
	if u := s.Unserved; u != nil {
		m.Unserved = &lifecycle.Unserved{Attempts: int(u.Attempts), Class: u.Class, Cause: u.Cause, Policy: u.PolicyHash, Backends: u.BackendsHash}
	}
	for _, c := range s.Conditions {
		m.Conditions = append(m.Conditions, lifecycle.Condition{
			Type: c.Type, Status: lifecycle.Status(c.Status), Reason: c.Reason, Message: c.Message,
		})
	}
	if j := s.Job; j != nil {
		m.Job = &lifecycle.JobMemory{
			Name: j.Name, Run: coreRun(j.Run), Mode: string(j.Mode), Strategy: j.Strategy, StrategyReason: j.StrategyReason, Errand: j.Errand, PodName: j.PodName, PodUID: j.PodUID,
			StartedAt: timeOf(j.StartTime), WaitingSince: timeOf(j.WaitStartTime), WaitedSeconds: j.WaitedSeconds,
			StopRequestedAt: timeOf(j.StopRequestTime), EndedAt: timeOf(j.EndTime),
		}
	}
	if p := s.Policy; p != nil {
		m.Policy = lifecycle.PolicyRef{Hash: p.Hash, Enforcement: string(p.Enforcement), Sources: p.Sources}
	}
	return m
}

// Status is the controller's part of the new status. The argument was is the status that it replaces: conditions keep the time of their
// last transition. What intake owns is left out.
func Status(m lifecycle.Memory, was v1alpha1.FeatureStatus, now time.Time) v1alpha1.FeatureStatus {
	s := v1alpha1.FeatureStatus{
		ObservedGeneration:  m.ObservedGeneration,
		Phase:               v1alpha1.Phase(m.Phase),
		Attempt:             m.Attempt,
		Failures:            int32(m.Failures),     //nolint:gosec // bounded by the retries of all tasks
		Lost:                int32(m.Lost),         //nolint:gosec // one for each attempt
		Unordered:           int32(m.Unordered),    //nolint:gosec // one for each attempt
		TaskFailures:        int32(m.TaskFailures), //nolint:gosec // one for each attempt
		Branch:              m.Branch,
		Head:                m.Head,
		LastCheckpoint:      m.LastCheckpoint,
		LastValidCheckpoint: m.LastValidCheckpoint,
		Checkpoints:         v1alpha1.CheckpointCounts(m.Checkpoints),
		Rollbacks:           apiRollbacks(m.Rollbacks),
		StartTime:           apiTime(m.StartedAt),
		CompletionTime:      apiTime(m.FinishedAt),
		ActiveSeconds:       m.ActiveSeconds,
		Locks:               m.Locks,
	}
	s.Conditions = apiConditions(m, was, now)
	s.Deliveries, s.Reviewers = apiDeliveries(m.Deliveries), apiHeeds(m.Heeds)
	if u := m.Unserved; u != nil {
		s.Unserved = &v1alpha1.UnservedStatus{
			Attempts: int32(u.Attempts), //nolint:gosec // one for each attempt
			Class:    u.Class, Cause: u.Cause, PolicyHash: u.Policy, BackendsHash: u.Backends,
		}
	}
	for _, r := range m.Requests {
		s.ObservedRequests = append(s.ObservedRequests, v1alpha1.ObservedRequest{
			ID: r.ID, State: string(r.State), Message: r.Message, ObservedTime: apiTime(r.At),
		})
	}
	if j := m.Job; j != nil {
		s.Job = &v1alpha1.JobStatus{
			Name: j.Name, Run: apiRun(j.Run), Mode: apiMode(j.Mode), Strategy: apiStrategy(j.Strategy), StrategyReason: plain.CutRunes(j.StrategyReason, maxStrategyReason), Errand: j.Errand, PodName: j.PodName, PodUID: j.PodUID,
			StartTime: apiTime(j.StartedAt), WaitStartTime: apiTime(j.WaitingSince), WaitedSeconds: j.WaitedSeconds,
			StopRequestTime: apiTime(j.StopRequestedAt), EndTime: apiTime(j.EndedAt),
		}
	}
	if m.Policy.Hash != "" {
		s.Policy = &v1alpha1.PolicyStatus{
			Hash: m.Policy.Hash, Enforcement: v1alpha1.Enforcement(m.Policy.Enforcement), Sources: m.Policy.Sources,
		}
	}
	bound(&s)
	return s
}

// rollbacks of a status; zero where there was none.
func rollbacks(s *v1alpha1.RollbackStatus) lifecycle.Rollbacks {
	if s == nil {
		return lifecycle.Rollbacks{}
	}
	return lifecycle.Rollbacks{Total: s.Total, Supervision: s.Supervision, Request: s.Request, Violation: s.Violation, Last: lifecycle.Rollback{
		Time: timeOf(&s.Last.RollbackTime), Cause: string(s.Last.Cause), Before: s.Last.Before, To: s.Last.To, Reason: s.Last.Reason,
	}}
}

func apiRollbacks(r lifecycle.Rollbacks) *v1alpha1.RollbackStatus {
	if r.Total == 0 {
		return nil
	}
	return &v1alpha1.RollbackStatus{Total: r.Total, Supervision: r.Supervision, Request: r.Request, Violation: r.Violation, Last: v1alpha1.LastRollback{
		RollbackTime: *apiTime(r.Last.Time), Cause: v1alpha1.RollbackCause(r.Last.Cause), Before: r.Last.Before, To: r.Last.To, Reason: r.Last.Reason,
	}}
}

// maxStrategyReason bounds why a strategy was chosen, in characters, as the API does.
const maxStrategyReason = 256

// apiStrategy is a strategy that an attempt can run by, or none.
func apiStrategy(s string) string {
	if s == policy.StrategyDirect || s == policy.StrategyShadow {
		return s
	}
	return ""
}

func apiConditions(m lifecycle.Memory, was v1alpha1.FeatureStatus, now time.Time) []metav1.Condition {
	var old, list []metav1.Condition
	old = append(old, was.Conditions...)
	w := conditions.Writer{List: &old, Generation: m.ObservedGeneration, Now: now}
	for _, c := range m.Conditions {
		w.Set(c.Type, metav1.ConditionStatus(c.Status), c.Reason, c.Message)
	}
	for _, c := range m.Conditions {
		for _, set := range old {
			if set.Type == c.Type {
				list = append(list, set)
			}
		}
	}
	return list
}

// Settled is the old status with the parts of a newer one that need no write of their own. That is the end of the wait for the pod, which
// the pod itself shows as long as it exists. The next write includes it.
func Settled(was, now v1alpha1.FeatureStatus) v1alpha1.FeatureStatus {
	if was.Job == nil || now.Job == nil || was.Job.WaitStartTime == nil || now.Job.WaitStartTime != nil || was.Phase != now.Phase {
		return was
	}
	was.Job = was.Job.DeepCopy()
	was.Job.WaitStartTime, was.Job.WaitedSeconds = nil, now.Job.WaitedSeconds
	return was
}

// StatusConfig is a status as server-side apply takes it. The API's JSON is what both types have in common, so it carries
// every field without one being named here.
func StatusConfig(s v1alpha1.FeatureStatus) (*applyv1alpha1.FeatureStatusApplyConfiguration, error) {
	s.Run = nil
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	config := applyv1alpha1.FeatureStatus()
	if err := json.Unmarshal(raw, config); err != nil {
		return nil, fmt.Errorf("decode status: %w", err)
	}
	return config, nil
}

// apiRun and coreRun are the kind of a run in the API's words and in the core's, which are those of the labels of Jobs.
func apiRun(run lifecycle.RunKind) v1alpha1.RunKind {
	switch run {
	case lifecycle.RunSeal:
		return v1alpha1.RunKindSeal
	case lifecycle.RunGate:
		return v1alpha1.RunKindGate
	case lifecycle.RunAgent:
	}
	return v1alpha1.RunKindAgent
}

func coreRun(run v1alpha1.RunKind) lifecycle.RunKind {
	switch run {
	case v1alpha1.RunKindSeal:
		return lifecycle.RunSeal
	case v1alpha1.RunKindGate:
		return lifecycle.RunGate
	case v1alpha1.RunKindAgent:
	}
	return lifecycle.RunAgent
}

// apiMode is a mode that the API knows, or none. It comes from a Job's label: a strange one must not keep the status from
// being written.
func apiMode(mode string) v1alpha1.ExecutionMode {
	switch m := v1alpha1.ExecutionMode(mode); m {
	case v1alpha1.ModeInteractive, v1alpha1.ModeDeterministic:
		return m
	default:
		return ""
	}
}

// apiTime is a time as the API keeps it: whole seconds, or nil.
func apiTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t).Rfc3339Copy()
	return &at
}
