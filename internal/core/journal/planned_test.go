// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestAnApprovalEndsWithANewPlan: a user who asks for another plan has taken back the approval, also if a model proposes the same plan once more.
func TestAnApprovalEndsWithANewPlan(t *testing.T) {
	plan := func(task string) *protocol.Proposal {
		return &protocol.Proposal{Milestones: []protocol.ProposedMilestone{{Name: "page", Tasks: []protocol.ProposedTask{{Name: task, Instructions: "Do it."}}}}}
	}
	proposed := func(task string) journal.Record {
		return journal.Record{Planned: &journal.Planned{Plan: plan(task)}}
	}
	approved := journal.Record{PlanApproved: &journal.PlanApproved{Hash: plans.Hash(*plan("form"))}}
	for name, tc := range map[string]struct {
		more []journal.Record
		want string
	}{
		"approved":                 {nil, approved.PlanApproved.Hash},
		"in the next attempt":      {[]journal.Record{attempt2}, approved.PlanApproved.Hash},
		"another plan":             {[]journal.Record{proposed("save")}, ""},
		"the same plan":            {[]journal.Record{proposed("form")}, ""},
		"no other plan":            {[]journal.Record{{PlanMissing: &journal.PlanMissing{Request: "replan-1", Message: "503"}}}, approved.PlanApproved.Hash},
		"the same plan, later":     {[]journal.Record{proposed("save"), proposed("form")}, ""},
		"approved once more after": {[]journal.Record{proposed("save"), proposed("form"), approved}, approved.PlanApproved.Hash},
	} {
		if s := read(t, write(t, append([]journal.Record{attempt1, base, proposed("form"), approved}, tc.more...)...)); s.Approved != tc.want {
			t.Errorf("%s: approved is %q, want %q", name, s.Approved, tc.want)
		}
	}
}
