// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// TestRIntTheReviewerOfKnowledge looks after 3 tasks and at milestones, before the assessor, and only where it can write.
func TestRIntTheReviewerOfKnowledge(t *testing.T) {
	no, yes := false, true
	for name, tc := range map[string]struct {
		policy func(*policy.Effective)
		at     review.Breakpoint
		want   []string
	}{
		"after 2 tasks":                 {at: review.Breakpoint{Over: 2}},
		"after 3 tasks":                 {at: review.Breakpoint{Over: 3}, want: []string{knower}},
		"a milestone":                   {at: review.Breakpoint{Over: 1, Milestone: true}, want: []string{style, design, knower, assessor}},
		"agents get no knowledge":       {policy: func(p *policy.Effective) { p.Knowledge.Inject, p.Reviewers.Knowledge.Enabled = false, &yes }, at: review.Breakpoint{Over: 3}},
		"the policy does not want it":   {policy: func(p *policy.Effective) { p.Reviewers.Knowledge.Enabled = &no }, at: review.Breakpoint{Over: 3}},
		"a policy that does not say it": {policy: func(p *policy.Effective) { p.Reviewers.Knowledge = policy.Reviewer{} }, at: review.Breakpoint{Over: 3, Milestone: true}, want: []string{style, design, assessor}},
	} {
		p := writing()
		if tc.policy != nil {
			tc.policy(&p)
		}
		if diff := cmp.Diff(tc.want, names(nil, p, tc.at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestROwnEachKindOfDocumentsHasOneReviewer, so that no two write the same document.
func TestROwnEachKindOfDocumentsHasOneReviewer(t *testing.T) {
	var kinds []knowledge.Kind
	for _, r := range review.All(writing()) {
		kinds = append(kinds, r.Knows...)
	}
	want := knowledge.Kinds()
	slices.Sort(kinds)
	slices.Sort(want)
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrittenWords(t *testing.T) {
	for written, want := range map[int][2]string{0: {"", ": no documents written"}, 1: {"; 1 document written", ": 1 document written"}, 2: {"; 2 documents written", ": 2 documents written"}} {
		if got := review.WrittenWords(reviewer(t, style), written); got != want[0] {
			t.Errorf("%d: %q", written, got)
		}
		if got := review.WrittenWords(reviewer(t, knower), written); got != want[1] {
			t.Errorf("%d: %q", written, got)
		}
	}
}

// TestRefusedWords name each cause once.
func TestRefusedWords(t *testing.T) {
	for want, refused := range map[string][]string{
		"": nil,
		"; 1 proposed document does not count (Unfit)":                  {"Unfit"},
		"; 3 proposed documents do not count (Unfit, Taken)":            {"Unfit", "Taken", "Unfit"},
		"; 2 proposed documents do not count (Closed: a file is there)": {"Closed", "Closed"},
	} {
		if got := review.RefusedWords(refused, "a file is there"); got != want {
			t.Errorf("%q: %q", refused, got)
		}
	}
}
