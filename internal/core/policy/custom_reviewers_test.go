// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCustomReviewers: a reviewer that the platform forces stays as it is, and all of them count by their names.
func TestCustomReviewers(t *testing.T) {
	looks := func(name, instructions string, paths ...string) CustomReviewer {
		return CustomReviewer{Name: name, Instructions: instructions, EveryTasks: 2, Paths: paths, Priority: ReviewLow}
	}
	of := func(list ...CustomReviewer) Rules { return Rules{Reviewers: ReviewerRules{Custom: list}} }
	policies := []Source{
		{Name: "s/a", Scope: Global, Overrides: of(looks("fixed", "Look.")), Defaults: of(looks("general", "Look at all."))},
		{Name: "p/a", Scope: Project, Overrides: of(looks("fixed", "Look away.")), Defaults: of(looks("both", "Second."), looks("same", "Same.", "b", "a"))},
		{Name: "p/b", Scope: Project, Defaults: of(looks("both", "First."), looks("same", "Same.", "a", "b", "a"))},
	}
	want := []CustomReviewer{looks("both", "First."), looks("fixed", "Look."), looks("general", "Look at all."), looks("same", "Same.", "a", "b")}
	conflicts := []string{"reviewers.custom.both: defaults of p/a and defaults of p/b disagree at priority 0; the stricter value is taken, give one of them a higher priority"}
	for range 2 {
		got := Merge(Sources{Policies: policies})
		if diff := cmp.Diff(want, got.Reviewers.Custom); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(conflicts, got.Conflicts); diff != "" || got.Origins["reviewers.custom.fixed"] != "overrides of s/a" {
			t.Errorf("conflicts (-want +got):\n%s\norigins %v", diff, got.Origins)
		}
		if got.Hash == Merge(Sources{}).Hash {
			t.Error("they do not count in the hash")
		}
		slices.Reverse(policies)
	}
}

// TestTooManyCustomReviewers: those of the source that comes first run, so that no project pushes out a reviewer of the platform.
func TestTooManyCustomReviewers(t *testing.T) {
	var project []CustomReviewer
	for i := range MaxCustomReviewers {
		project = append(project, CustomReviewer{Name: fmt.Sprintf("a%d", i), Instructions: "Look.", Priority: ReviewLow})
	}
	slices.Reverse(project)
	platform := []CustomReviewer{{Name: "z", Instructions: "Look.", Priority: ReviewLow}}
	got := Merge(Sources{Policies: []Source{
		{Name: "s/a", Scope: Global, Overrides: Rules{Reviewers: ReviewerRules{Custom: platform}}},
		{Name: "p/a", Scope: Project, Defaults: Rules{Reviewers: ReviewerRules{Custom: project}}},
	}})
	var names []string
	for _, r := range got.Reviewers.Custom {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "z"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"reviewers.custom: policies define 9 reviewers together, and at most 8 run: remove a7"}, got.Conflicts); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
}

func TestCustomReviewersThatCannotBeUsed(t *testing.T) {
	bad := Rules{Reviewers: ReviewerRules{Custom: []CustomReviewer{
		{Name: "Licenses", Instructions: "Look.", Priority: ReviewLow},
		{Name: strings.Repeat("a", 41), Instructions: "Look."},
		{Name: "code-style", Instructions: "Look.", EveryTasks: -1, Priority: "Critical"},
		{Name: "silent", Instructions: " \n"},
		{Name: "long", Instructions: strings.Repeat("ü", MaxReviewInstructions+1)},
		{Name: "bell", Instructions: "\a", EveryTasks: 1_000_001},
		{Name: "good", Instructions: "Look.\n\tTwice.", EveryTasks: 1_000_000, Priority: ReviewNormal},
	}}}
	want := `at.reviewers.custom[Licenses].name: it must begin with a letter and have only lower case letters, digits and dashes, at most 40 characters, for example licenses
at.reviewers.custom[` + strings.Repeat("a", 41) + `].name: it must begin with a letter and have only lower case letters, digits and dashes, at most 40 characters, for example licenses
at.reviewers.custom[code-style].name: it is the name of a reviewer of Tidewaiter, choose another
at.reviewers.custom[code-style].everyTasks: -1 must be from 0 to 1000000
at.reviewers.custom[code-style].priority: "Critical" is not one of [Normal Low]
at.reviewers.custom[silent].instructions: say what the reviewer looks for
at.reviewers.custom[long].instructions: it has 4001 characters, shorten it to at most 4000
at.reviewers.custom[bell].everyTasks: 1000001 must be from 0 to 1000000
at.reviewers.custom[bell].instructions: the character at byte 0 is not printable, remove it`
	if err := bad.Validate("at"); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
