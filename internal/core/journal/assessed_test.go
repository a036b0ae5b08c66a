// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// assessedOrders let the assessor run besides the reviewers.
func assessedOrders(tasks ...string) journal.Record {
	r := reviewedOrders(tasks...)
	r.Orders.Policy.Reviewers.Assessor = policy.Reviewer{Enabled: new(true), EveryTasks: 5}
	return r
}

// verdict is the record of a review of the assessor.
func verdict(over int, outcome, reason string, given ...protocol.Directive) journal.Record {
	return journal.Record{Reviewed: &journal.Reviewed{Reviewer: protocol.SourceAssessor, Task: "form", Over: over, Tree: "t", Outcome: outcome, Diverged: reason, Directives: given}}
}

// replan is a plan that a request has led to.
func replan(request string) journal.Record {
	return journal.Record{Planned: &journal.Planned{Plan: &protocol.Proposal{}, Request: request}}
}

// blocked ends an attempt, and another one follows because a user has decided so.
func blocked(epoch int64) []journal.Record {
	return []journal.Record{
		{Final: &protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonPlanDiverged}},
		{Attempt: &journal.Attempt{Epoch: epoch, Run: protocol.RunAgent}},
	}
}

// TestAVerdictInTheJournal: it decides the interval of the assessor, and a drift makes the other reviewers urgent. Nobody checks answers to its directive.
func TestAVerdictInTheJournal(t *testing.T) {
	d := protocol.Directive{ID: "assessor/a", Source: protocol.SourceAssessor, Description: "Test it."}
	s := read(t, write(t, attempt1, base, assessedOrders("form"), verdict(1, protocol.ReviewMinorDrift, "", d), answered(d, protocol.DirectiveActive)))
	want := review.History{
		protocol.SourceAssessor:  {Asked: 1, Looked: 1, Tree: "t", Every: 3},
		protocol.SourceCodeStyle: {Urgency: 50}, protocol.SourceDesign: {Urgency: 50},
	}
	if diff := cmp.Diff(want, s.Reviews); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(s.Found) != 1 || s.Diverged != nil {
		t.Errorf("found %+v, diverged %+v", s.Found, s.Diverged)
	}
	s = read(t, write(t, attempt1, base, assessedOrders("form"), verdict(1, protocol.ReviewMinorDrift, "", d), answered(d, protocol.DirectiveAddressed)))
	if len(s.Found) != 0 || len(s.Answered) != 0 {
		t.Errorf("found %+v, answered %+v", s.Found, s.Answered)
	}
	for name, r := range map[string]journal.Record{
		"a divergence without a reason": verdict(1, protocol.ReviewMajorDivergence, ""),
		"a reason without a divergence": verdict(1, protocol.ReviewAligned, "It is another app."),
		"a divergence of another one":   {Reviewed: &journal.Reviewed{Reviewer: protocol.SourceDesign, Outcome: protocol.ReviewMajorDivergence, Diverged: "It is another app."}},
	} {
		if _, err := journal.Replay([]journal.Record{attempt1, base, assessedOrders("form"), r}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestADivergenceInTheJournal: it stands until there is another plan, or until a user decides. Only so many plans follow without a user.
func TestADivergenceInTheJournal(t *testing.T) {
	diverges := func(over int) journal.Record {
		return verdict(over, protocol.ReviewMajorDivergence, "It is another app.")
	}
	stands := func(n string, last bool) *journal.Diverged {
		return &journal.Diverged{Request: "assessor/" + n, Reason: "It is another app.", Last: last}
	}
	missing := journal.Record{PlanMissing: &journal.PlanMissing{Request: "assessor/1", Message: "the provider is away"}}
	again := []journal.Record{diverges(3), replan("assessor/1"), diverges(6), replan("assessor/2"), diverges(9), replan("assessor/3"), diverges(12)}
	for name, tc := range map[string]struct {
		records []journal.Record
		want    *journal.Diverged
	}{
		"at once":                    {[]journal.Record{diverges(3)}, stands("1", false)},
		"without another plan":       {[]journal.Record{diverges(3), missing}, stands("1", false)},
		"after the attempt was lost": {[]journal.Record{diverges(3), attempt2}, stands("1", false)},
		"with another plan":          {[]journal.Record{diverges(3), replan("assessor/1")}, nil},
		"with a plan of a user":      {[]journal.Record{diverges(3), replan("mine")}, nil},
		"after a user has decided":   {append([]journal.Record{diverges(3)}, blocked(2)...), nil},
		"lost after a decision":      {append(append([]journal.Record{diverges(3)}, blocked(2)...), diverges(6), journal.Record{Attempt: &journal.Attempt{Epoch: 3, Run: protocol.RunAgent}}), stands("2", false)},
		"again":                      {again[:3], stands("2", false)},
		"for the fourth time":        {again, stands("4", true)},
		"after a decision about it":  {append(append(append([]journal.Record{}, again...), blocked(2)...), diverges(15)), stands("5", false)},
	} {
		s := read(t, write(t, append([]journal.Record{attempt1, base, assessedOrders("form"), replan("")}, tc.records...)...))
		if diff := cmp.Diff(tc.want, s.Diverged); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
