// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// apprentice is one whose work two reviewers look at. What their models say is scripted, too.
var apprentice = story{
	name:    "apprentice",
	about:   "is Claude Code; one reviewer finds a title that is not like the others, which the agent mends at the end, and one finds nothing",
	allowed: []string{reviewedPage},
	script: `turns:
- text: I write the page.
  run: 'case "$TIDEWAITER_TASK" in delivery/polish/*) title="` + plain + `";; *) title="` + loud + `";; esac; mkdir -p docs/tour; printf "%s\n\nTwo reviewers read this page.\n" "$title" > ` + reviewedPage + `'
- text: "The page is written.\nDIRECTIVE ` + inconsistency + `: ADDRESSED - the title is like the others."`,
	reviewers: &v1alpha1.ReviewerRules{
		CodeStyle: reviewer(`summary: A title in capitals., findings: [{path: ` + reviewedPage + `, line: 1, quote: "` + loud + `", rule: titles, description: Write the title as the other pages do, rationale: No other page has a title in capitals., priority: Low}]`),
		Design:    reviewer("summary: The page does what it should., findings: []"),
		Knowledge: &v1alpha1.ReviewerRule{Enabled: new(false)},
		Assessor:  &v1alpha1.ReviewerRule{Enabled: new(false)},
	},
	check: reviewed,
}

// The page of apprentice, its first title and its last one. The id of the directive follows from the reviewer, the rule, the path and the quote.
const (
	reviewedPage  = "docs/tour/reviews.md"
	loud          = "# THE REVIEWS"
	plain         = "# The reviews"
	inconsistency = "code-style/060cd900"
)

// reviewer that always answers with these findings.
func reviewer(findings string) *v1alpha1.ReviewerRule {
	return &v1alpha1.ReviewerRule{Enabled: new(true), Instructions: fenced(" report_findings", "turns:\n- tool: {name: report_findings, input: {"+findings+"}}")}
}

// storyLabel is on the Features that have a policy of their own.
const storyLabel = v1alpha1.PolicyLabelPrefix + "story"

// review makes a policy that gives the Feature of a story its reviewers.
func (d *demo) review(ctx context.Context, s story) error {
	policy := &v1alpha1.SupervisorPolicy{Spec: v1alpha1.SupervisorPolicySpec{
		Selector:  &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{storyLabel: v1alpha1.LabelValue(s.name)}},
		Overrides: &v1alpha1.Rules{Reviewers: s.reviewers},
	}}
	policy.Namespace, policy.Name = project, s.name
	return d.Create(ctx, policy)
}

// reviewed checks that one reviewer has found something that the agent has mended, that another one has found nothing, and that the work is delivered.
func reviewed(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	d.progress.say("its reviews:")
	outcomes := map[string]string{}
	for _, r := range f.Status.Run.Reviews {
		outcomes[r.Reviewer] = r.Outcome
		d.progress.verbatim(fmt.Sprintf("%-9s after task %s: %-10s %s\n", r.Reviewer, r.Task, r.Outcome, r.Summary))
	}
	if len(f.Status.Run.Reviews) != 2 || outcomes["CodeStyle"] != "MinorDrift" || outcomes["Design"] != "Aligned" {
		return fmt.Errorf("want a review that finds something and one that does not, have %+v", f.Status.Run.Reviews)
	}
	d.progress.say("the directive of a reviewer, and the tasks of the agent:")
	for _, given := range f.Status.Run.Directives {
		d.progress.verbatim(fmt.Sprintf("directive %s from %s: %s, %s, %s. %s\n", given.ID, given.Source, given.Type, given.Priority, given.State, given.Description))
	}
	if all := f.Status.Run.Directives; len(all) != 1 || all[0].ID != inconsistency || all[0].State != "Addressed" {
		return fmt.Errorf("want the directive %s, Addressed, have %+v", inconsistency, all)
	}
	for _, t := range f.Status.Run.Tasks {
		d.progress.verbatim(fmt.Sprintf("task %-17s %s\n", t.Name, t.State))
	}
	page, err := git(ctx, mirror, "show", f.Status.Branch+":"+reviewedPage)
	if err != nil {
		return err
	}
	if want := plain + "\n\nTwo reviewers read this page.\n"; page != want {
		return fmt.Errorf("the page is %q, want %q: %s", page, want, cluster.Message(f, v1alpha1.ConditionSucceeded))
	}
	return delivered(ctx, d, f, mirror)
}
