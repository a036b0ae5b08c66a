// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// insideAndOutside are one in a file that the reviewer sees, and one in a file that it does not see.
const insideAndOutside = `- tool: {name: report_findings, input: {summary: The form has no license., findings: [{path: web/form.html, line: 1, quote: page/form, rule: license, description: Name the license, priority: Critical}, {path: web/index.html, line: 1, quote: Shop, rule: license, description: Name the license too, priority: Low}]}}`

// TestACustomReviewerLooksAtItsPaths: it sees no other files, is not called while none of its paths has changed, and finds what its team asks for.
func TestACustomReviewerLooksAtItsPaths(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, "- text: nothing", func(o *protocol.Orders) {
		o.Policy.Reviewers.CodeStyle.Enabled = new(false)
		o.Policy.Reviewers.Custom = []policy.CustomReviewer{
			{Name: "licenses", Instructions: says(insideAndOutside), EveryTasks: 1, Paths: []string{"form.html"}, Priority: policy.ReviewLow},
			{Name: "lists", Instructions: says("- tool: {name: report_findings, input: {summary: Nothing., findings: []}}"), EveryTasks: 1, Paths: []string{"web/show.html"}, Priority: policy.ReviewNormal},
		}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	var reviews []string
	records, state := w.recorded()
	for _, r := range records {
		if v := r.Reviewed; v != nil && v.Passed {
			reviews = append(reviews, v.Reviewer+" "+v.Task+" passed")
		} else if v != nil {
			said := []string{v.Reviewer, v.Task, v.Outcome}
			for _, d := range v.Discarded {
				said = append(said, string(d.Reason))
			}
			reviews = append(reviews, strings.Join(said, " "))
		}
	}
	want := []string{
		"custom/licenses page/form MinorDrift NotInTree", "custom/lists page/form passed",
		"custom/licenses page/save passed", "custom/lists page/save passed",
		"custom/licenses list/show passed", "custom/lists list/show Aligned",
	}
	if diff := cmp.Diff(want, reviews); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	asked := player.Recorded()
	if len(asked) != 2 {
		t.Fatalf("%d questions", len(asked))
	}
	for i, seen := range []string{"web/form.html", "web/show.html"} {
		for _, file := range []string{"web/form.html", "web/save.html", "web/show.html"} {
			if got := strings.Contains(asked[i].Body, file+" (Added)"); got != (file == seen) {
				t.Errorf("question %d shows %s: %v", i, file, got)
			}
		}
	}
	if diff := cmp.Diff(polished, w.tasks()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	s := w.intake.Status()
	if len(s.Reviews) != 2 || s.Reviews[0].Reviewer != "custom/licenses" || s.Reviews[0].Summary != "licenses review: 2 findings, 1 cleanup directive. The form has no license." {
		t.Errorf("reviews in the status: %+v", s.Reviews)
	}
	if len(state.Found) != 1 || state.Found[0].Source != "custom/licenses" || state.Found[0].Priority != protocol.PriorityLow || state.Found[0].Type != protocol.DirectiveCleanup {
		t.Errorf("directives: %+v", state.Found)
	}
}

// TestACustomReviewerLeavesThePolicy: its directive stays, and the watchdog goes through a journal with its reviews.
func TestACustomReviewerLeavesThePolicy(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, "- text: nothing", func(o *protocol.Orders) {
		o.Policy.Reviewers.CodeStyle.Enabled = new(false)
		o.Policy.Reviewers.Custom = []policy.CustomReviewer{{Name: "licenses", Instructions: says(insideAndOutside), EveryTasks: 1, Priority: policy.ReviewLow}}
	})
	run := w.start(1, pullAt("reviewed", 1))
	if err := run.wait(); err == nil {
		t.Fatal("the watchdog has not ended at the review")
	}
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Reviewers.Custom = nil
		o.Policy.Reviewers.Design = policy.Reviewer{Enabled: new(true)} // so that there are reviewers
	})
	run.resume(false)
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	_, state := w.recorded()
	if len(state.Found) != 2 || state.Found[0].Source != "custom/licenses" || state.Reviews["custom/licenses"].Looked != 1 {
		t.Errorf("directives %+v, reviews %+v", state.Found, state.Reviews)
	}
	if diff := cmp.Diff(polished, w.tasks()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}
