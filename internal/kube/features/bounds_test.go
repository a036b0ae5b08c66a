// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/deliveries"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/schema"
)

// blocked is a Feature that waits for a person, with the facts of it.
func blocked(f *v1alpha1.Feature) lifecycle.Observed {
	o := lifecycle.Observed{
		Live: true, Spec: Spec(f, policy.Effective{}), Policy: lifecycle.PolicyRef{Hash: "h"},
		Memory: lifecycle.Memory{Phase: lifecycle.Blocked, Attempt: 1, Job: &lifecycle.JobMemory{Name: "login-1", Run: lifecycle.RunAgent, EndedAt: now}},
		Run:    &lifecycle.Run{Epoch: 1, Final: &lifecycle.Final{Epoch: 1, Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonBreakerOpen, Message: "It failed."}},
	}
	return o
}

// TestALongRollbackNameIsRefusedInAStatusThatFits: the message quotes it.
func TestALongRollbackNameIsRefusedInAStatusThatFits(t *testing.T) {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("f", 52)}}
	f.Spec.Requests = []v1alpha1.Request{{ID: "back", Rollback: &v1alpha1.RollbackRequest{Checkpoint: strings.Repeat("\ue000", 253)}}}
	status := Status(lifecycle.Next(blocked(f), now).Memory, v1alpha1.FeatureStatus{}, now)
	if len(status.ObservedRequests) != 1 || !strings.HasSuffix(status.ObservedRequests[0].Message, "…") {
		t.Errorf("the results are %+v", status.ObservedRequests)
	}
	if err := schema.Refusal(status); err != nil {
		t.Error(err)
	}
}

// TestManyBusyContractsFailInAStatusThatFits: the answer to a retry names them all.
func TestManyBusyContractsFailInAStatusThatFits(t *testing.T) {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "login"}}
	f.Spec.Requests = []v1alpha1.Request{{ID: "again", Retry: &v1alpha1.RetryRequest{}}}
	o := blocked(f)
	o.Locks.Fail, o.Areas = true, &lifecycle.Areas{}
	for n := range 16 {
		name := fmt.Sprintf("%d%s", n, strings.Repeat("c", 61))
		o.Locks.Wanted = append(o.Locks.Wanted, name)
		o.Locks.Busy = append(o.Locks.Busy, lifecycle.Contender{Contract: name, Who: "Feature " + strings.Repeat("n", 63) + "/" + strings.Repeat("f", 52)})
	}
	status := Status(lifecycle.Next(o, now).Memory, v1alpha1.FeatureStatus{}, now)
	if len(status.ObservedRequests) != 1 || status.ObservedRequests[0].State != string(lifecycle.RequestFailed) {
		t.Errorf("the results are %+v", status.ObservedRequests)
	}
	if err := schema.Refusal(status); err != nil {
		t.Error(err)
	}
}

// TestDeliveriesHaveRoom: what others have delivered does not make a status larger than there is room for.
func TestDeliveriesHaveRoom(t *testing.T) {
	s := v1alpha1.FeatureStatus{}
	for n := range deliveries.MaxNotices {
		d := v1alpha1.ForeignDelivery{Feature: fmt.Sprintf("f%d", n), PathCount: deliveries.MaxPaths}
		for range deliveries.MaxPaths {
			d.Paths = append(d.Paths, strings.Repeat("<", deliveries.MaxPath))
		}
		s.Deliveries = append(s.Deliveries, d)
	}
	bound(&s)
	if n := size(&s); n > maxStatusBytes || len(s.Deliveries) != deliveries.MaxNotices || len(s.Deliveries[deliveries.MaxNotices-1].Paths) != deliveries.MaxPaths {
		t.Errorf("%d bytes: %d deliveries", n, len(s.Deliveries))
	}
}

// TestNoStatusIsRefused: of the most extreme specs and facts, status after status.
func TestNoStatusIsRefused(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		unit := rapid.SampledFrom([]string{"x", "<", "\x01", "\u2028", "\U0001F600", "\xff", "\ue000", "ü "}).Draw(t, "unit")
		return strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 40, 63, 64, 128, 253, 1024, 1025, 5000}).Draw(t, "n"))
	})
	rapid.Check(t, func(t *rapid.T) {
		f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("f", rapid.IntRange(1, 52).Draw(t, "name")), Generation: 3}}
		f.Spec.Suspend = rapid.Bool().Draw(t, "suspend")
		f.Spec.MaxRetries = ptr.To[int32](0)
		checkpoint := text.Draw(t, "checkpoint")
		for n := range rapid.SampledFrom([]int{0, 1, 64}).Draw(t, "requests") {
			r := v1alpha1.Request{ID: fmt.Sprintf("%063d", n)}
			switch n % 4 {
			case 0:
				r.Rollback = &v1alpha1.RollbackRequest{Checkpoint: checkpoint}
			case 1:
				r.Retry = &v1alpha1.RetryRequest{}
			case 2:
				r.ApprovePlan = &v1alpha1.ApprovePlanRequest{}
			default:
				r.Checkpoint = &v1alpha1.CheckpointRequest{}
			}
			f.Spec.Requests = append(f.Spec.Requests, r)
		}
		o := blocked(f)
		o.Policy = lifecycle.PolicyRef{Hash: text.Draw(t, "hash"), Sources: rapid.SliceOfN(text, 0, 70).Draw(t, "sources")}
		o.PolicyConflicts = rapid.SliceOfN(text, 0, 8).Draw(t, "conflicts")
		o.Spec.ModeNotice, o.Spec.Branch = text.Draw(t, "notice"), text.Draw(t, "branch")
		o.Memory.Phase = rapid.SampledFrom([]lifecycle.Phase{lifecycle.Blocked, lifecycle.Failed, lifecycle.Running, lifecycle.ReadyToMerge, lifecycle.Delivered}).Draw(t, "phase")
		if rapid.Bool().Draw(t, "active") {
			o.Memory.Job.EndedAt, o.Run.Final = time.Time{}, nil
			o.Memory.Job.PodUID, o.Memory.Job.PodName = "uid", text.Draw(t, "pod")
			o.Pods = []lifecycle.Pod{{Name: "login-1-x", UID: "uid", Started: true, Problem: &lifecycle.Problem{Reason: text.Draw(t, "reason"), Message: text.Draw(t, "problem")}}}
		} else {
			o.Run.Final = &lifecycle.Final{Epoch: 1, Outcome: rapid.SampledFrom([]string{protocol.OutcomeBlocked, protocol.OutcomeAgentFailed, protocol.OutcomeReadyToMerge, "Strange"}).Draw(t, "outcome"), Reason: text.Draw(t, "why"), Message: text.Draw(t, "last"), Head: text.Draw(t, "head")}
		}
		o.Run.Question, o.Run.QuestionID, o.Run.Task = text.Draw(t, "question"), text.Draw(t, "question id"), text.Draw(t, "task")
		o.Run.Checkpoint = &lifecycle.Checkpoint{Name: text.Draw(t, "last checkpoint"), Verdict: "Invalid", Reason: text.Draw(t, "rule"), Message: text.Draw(t, "violation")}
		for n := range rapid.SampledFrom([]int{0, 3, 40}).Draw(t, "locks") {
			contract := fmt.Sprintf("%d%s", n, strings.Repeat("c", 60))
			o.Locks.Wanted = append(o.Locks.Wanted, contract)
			o.Locks.Busy = append(o.Locks.Busy, lifecycle.Contender{Contract: contract, Who: text.Draw(t, "who")})
		}
		o.Locks.Fail = rapid.Bool().Draw(t, "fail")
		if rapid.Bool().Draw(t, "refused") {
			o.Refusal = &lifecycle.Refusal{Reason: v1alpha1.ReasonPolicyInvalid, Message: text.Draw(t, "refusal"), ByUser: rapid.Bool().Draw(t, "by user")}
		}
		was := v1alpha1.FeatureStatus{}
		for range 3 {
			d := lifecycle.Next(o, now)
			if d.Needs.Outdates() {
				t.Fatalf("the facts are live, and %s is needed", d.Needs)
			}
			was = Status(d.Memory, was, now)
			if err := schema.Refusal(was); err != nil {
				t.Fatal(err)
			}
			o.Memory = Memory(was)
		}
	})
}
