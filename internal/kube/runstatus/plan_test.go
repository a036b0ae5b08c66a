// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

// planned is a report of a plan, after a change.
func planned(change func(*protocol.PlanReport)) protocol.Report {
	p := protocol.Proposal{Allowed: []string{"web/**"}, Milestones: []protocol.ProposedMilestone{{Name: "page", Tasks: []protocol.ProposedTask{{Name: "form", Instructions: "Add it.", Gates: []string{"unit"}}}}}}
	r := protocol.PlanReport{Hash: plans.Hash(p), Plan: &p}
	change(&r)
	return protocol.Report{Epoch: 1, Sequence: 1, Time: reports.Time(1), Planned: &r}
}

// TestPlansAreKept: a plan stays in the run whatever later attempts report; one that no watchdog of ours would send is refused.
func TestPlansAreKept(t *testing.T) {
	run := Fold(v1alpha1.RunStatus{}, "f", 1, []protocol.Report{planned(func(*protocol.PlanReport) {})})
	if p := run.Plan; p == nil || p.Hash == "" || p.Milestones[0].Tasks[0].Gates[0] != "unit" || p.AllowedAreas[0] != "web/**" {
		t.Fatalf("plan %+v", p)
	}
	run = Fold(run, "f", 2, []protocol.Report{reports.New(2, 1, protocol.StatusReport{State: protocol.StateActive})})
	if run.Plan == nil {
		t.Error("the next attempt has lost the plan")
	}
	long := planned(func(r *protocol.PlanReport) {
		r.Plan.Allowed, r.Plan.Forbidden = []string{strings.Repeat("a", maxArea)}, []string{strings.Repeat("b", maxArea)}
	})
	if p := Fold(v1alpha1.RunStatus{}, "f", 1, []protocol.Report{long}).Plan; utf8.RuneCountInString(p.AllowedAreas[0]+p.ForbiddenAreas[0]) != 2*plans.MaxArea {
		t.Errorf("areas that the API does not take: %+v", p)
	}
	none := planned(func(r *protocol.PlanReport) { *r = protocol.PlanReport{Message: "the provider is away"} })
	if run := Fold(v1alpha1.RunStatus{}, "f", 2, []protocol.Report{none}); run.Plan == nil || run.Plan.Message != "the provider is away" {
		t.Errorf("a late report: %+v", run.Plan)
	}
}

func TestPlansAreValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*protocol.PlanReport)
		want   string
	}{
		"a plan":                {func(*protocol.PlanReport) {}, ""},
		"nothing":               {func(r *protocol.PlanReport) { r.Plan = nil }, "needs either a plan or a message"},
		"both":                  {func(r *protocol.PlanReport) { r.Message = "no" }, "needs either a plan or a message"},
		"another hash":          {func(r *protocol.PlanReport) { r.Hash = "x" }, "planned.hash is not 64 hexadecimal digits"},
		"no milestone":          {func(r *protocol.PlanReport) { r.Plan.Milestones = nil }, "no milestone"},
		"a name of an API":      {func(r *protocol.PlanReport) { r.Plan.Milestones[0].Name = "a/b" }, "milestones[0]"},
		"two tasks of one name": {func(r *protocol.PlanReport) { m := &r.Plan.Milestones[0]; m.Tasks = append(m.Tasks, m.Tasks[0]) }, "milestones[0].tasks"},
		"long instructions": {func(r *protocol.PlanReport) {
			r.Plan.Milestones[0].Tasks[0].Instructions = strings.Repeat("ä", maxInstructions+1)
		}, "milestones[0].tasks"},
		"a gate without a name":  {func(r *protocol.PlanReport) { r.Plan.Milestones[0].Tasks[0].Gates = []string{"a b"} }, "milestones[0].tasks"},
		"an area that is a book": {func(r *protocol.PlanReport) { r.Plan.Forbidden = []string{strings.Repeat("x", maxArea+1)} }, "an area of more than 1024 bytes"},
		"a hash of no plan":      {func(r *protocol.PlanReport) { *r = protocol.PlanReport{Message: "no", Hash: r.Hash} }, "and no plan"},
		"an approval of no plan": {func(r *protocol.PlanReport) { *r = protocol.PlanReport{Message: "no", Approved: true} }, "and no plan"},
		"a gate twice":           {func(r *protocol.PlanReport) { r.Plan.Milestones[0].Tasks[0].Gates = []string{"unit", "unit"} }, "milestones[0].tasks"},
		"the largest plan without its secrets": {func(r *protocol.PlanReport) {
			r.Plan.Milestones[0].Tasks[0].Instructions = strings.Repeat("[redacted: jwt]", plans.MaxInstructions/10)
			r.Plan.Allowed = []string{strings.Repeat("a", plans.MaxArea+50)}
		}, ""},
		"more bytes than a run has room for": {func(r *protocol.PlanReport) {
			m := &r.Plan.Milestones[0]
			m.Tasks = nil
			for i := range 20 {
				m.Tasks = append(m.Tasks, protocol.ProposedTask{Name: fmt.Sprint("t", i), Instructions: strings.Repeat("漢", maxInstructions)})
			}
		}, "planned.plan has more than"},
		"many areas": {func(r *protocol.PlanReport) { r.Plan.Allowed = make([]string, plans.MaxAreas+1) }, "more milestones, tasks or areas"},
	} {
		body, err := json.Marshal(protocol.ReportBatch{Version: protocol.Version, Reports: []protocol.Report{planned(tc.change)}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Decode(body)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
