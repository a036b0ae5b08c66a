// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReviewersAtATie: more reviews are stricter than fewer, and of limits the smaller one is.
func TestReviewersAtATie(t *testing.T) {
	a := ReviewerRules{
		CodeStyle:        ReviewerRule{Enabled: new(false), EveryTasks: new(0), OnMilestone: new(false), Instructions: "b"},
		Design:           ReviewerRule{Enabled: new(true), EveryTasks: new(9)},
		Knowledge:        ReviewerRule{EveryTasks: new(4)},
		Assessor:         ReviewerRule{Enabled: new(false), EveryTasks: new(8)},
		UrgencyThreshold: new(int64(50)), MaxDirectives: new(4), PolishTasks: new(0), CostAlertPercent: new(20),
	}
	b := ReviewerRules{
		CodeStyle:        ReviewerRule{Enabled: new(true), EveryTasks: new(7), OnMilestone: new(true), Instructions: "a"},
		Design:           ReviewerRule{Enabled: new(true), EveryTasks: new(3)},
		Knowledge:        ReviewerRule{EveryTasks: new(2)},
		Assessor:         ReviewerRule{Enabled: new(true), OnMilestone: new(false), Instructions: "c"},
		UrgencyThreshold: new(int64(200)), MaxDirectives: new(2), PolishTasks: new(5), CostAlertPercent: new(7),
	}
	want := Reviewers{
		CodeStyle:        Reviewer{Enabled: new(true), EveryTasks: 7, OnMilestone: true, Instructions: "a"},
		Design:           Reviewer{Enabled: new(true), EveryTasks: 3, OnMilestone: true},
		Knowledge:        Reviewer{EveryTasks: 2, OnMilestone: true},
		Assessor:         Reviewer{Enabled: new(true), EveryTasks: 8, Instructions: "c"},
		UrgencyThreshold: 50, MaxDirectives: 2, CostAlertPercent: 7,
	}
	for _, pair := range [][2]ReviewerRules{{a, b}, {b, a}} {
		got := Merge(Sources{Policies: []Source{{Name: "s/a", Scope: Global, Defaults: Rules{Reviewers: pair[0]}}, {Name: "s/b", Scope: Global, Defaults: Rules{Reviewers: pair[1]}}}})
		if diff := cmp.Diff(want, got.Reviewers); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, c := range got.Conflicts {
			if strings.HasPrefix(c, "reviewers.design.enabled") {
				t.Errorf("two policies that agree are a conflict: %s", c)
			}
		}
	}
}

// TestRCostEachReviewerIsTurnedOnOrOff: a reviewer runs where a policy says so or, without a word about it, where a model answers the supervisor.
func TestRCostEachReviewerIsTurnedOnOrOff(t *testing.T) {
	models := []ModelRef{{Role: RoleSupervisor, Backend: "b", Model: "m"}}
	other := []ModelRef{{Role: RolePrimary, Backend: "b", Model: "m"}}
	for name, tc := range map[string]struct {
		rules Rules
		want  bool
	}{
		"nothing is said":               {Rules{}, false},
		"a model for agents":            {Rules{Models: other}, false},
		"a model for the supervisor":    {Rules{Models: models}, true},
		"enabled":                       {Rules{Reviewers: ReviewerRules{Design: ReviewerRule{Enabled: new(true)}}}, true},
		"disabled, with a model for it": {Rules{Models: models, Reviewers: ReviewerRules{Design: ReviewerRule{Enabled: new(false)}}}, false},
		"another one is disabled":       {Rules{Models: models, Reviewers: ReviewerRules{CodeStyle: ReviewerRule{Enabled: new(false)}}}, true},
	} {
		e := Merge(Sources{Policies: []Source{{Name: "s/a", Scope: Global, Defaults: tc.rules}}})
		if got := e.Reviews(e.Reviewers.Design); got != tc.want {
			t.Errorf("%s: it runs: %t, want %t", name, got, tc.want)
		}
	}
	earlier := Effective{Models: models}
	if earlier.Reviews(earlier.Reviewers.Design) {
		t.Error("a reviewer runs by a policy of a version without reviewers")
	}
}

// TestReviewersCountInTheHashWhereTheyAreSet: a policy that sets what is built in keeps its hash.
func TestReviewersCountInTheHashWhereTheyAreSet(t *testing.T) {
	plain := Merge(Sources{}).Hash
	for name, tc := range map[string]struct {
		rules ReviewerRules
		same  bool
	}{
		"built in":     {ReviewerRules{CodeStyle: ReviewerRule{EveryTasks: new(5), OnMilestone: new(true)}, Knowledge: ReviewerRule{EveryTasks: new(3)}, Assessor: ReviewerRule{EveryTasks: new(5)}, UrgencyThreshold: new(int64(100)), MaxDirectives: new(3), PolishTasks: new(10), CostAlertPercent: new(10)}, true},
		"a threshold":  {ReviewerRules{UrgencyThreshold: new(int64(99))}, false},
		"a flag":       {ReviewerRules{Design: ReviewerRule{OnMilestone: new(false)}}, false},
		"not enabled":  {ReviewerRules{Design: ReviewerRule{Enabled: new(false)}}, false},
		"instructions": {ReviewerRules{Design: ReviewerRule{Instructions: "x"}}, false},
	} {
		e := Merge(Sources{Policies: []Source{{Name: "s/a", Scope: Global, Defaults: Rules{Reviewers: tc.rules}}}})
		if (e.Hash == plain) != tc.same {
			t.Errorf("%s: the hash is that of the built-in policy: %t, want %t", name, e.Hash == plain, tc.same)
		}
	}
}

func TestReviewersThatCannotBeUsed(t *testing.T) {
	bad := Rules{Reviewers: ReviewerRules{
		CodeStyle:        ReviewerRule{EveryTasks: new(-1), Instructions: strings.Repeat("\u00fc", MaxReviewInstructions+1)},
		Design:           ReviewerRule{Instructions: "Look.\n\tTwice.\x1b[2J"},
		UrgencyThreshold: new(int64(0)), MaxDirectives: new(13), PolishTasks: new(101), CostAlertPercent: new(0),
	}}
	want := `at.reviewers.codeStyle.everyTasks: -1 must be from 0 to 1000000
at.reviewers.codeStyle.instructions: it has 4001 characters, shorten it to at most 4000
at.reviewers.design.instructions: the character at byte 13 is not printable, remove it
at.reviewers.urgencyThreshold: 0.00 must be from 0.01 to 999.99
at.reviewers.maxDirectives: 13 must be from 1 to 12
at.reviewers.polishTasks: 101 must be from 0 to 100
at.reviewers.costAlertPercent: 0 must be from 1 to 100`
	if err := bad.Validate("at"); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	good := Rules{Reviewers: ReviewerRules{Design: ReviewerRule{Instructions: strings.Repeat("\u00fc", MaxReviewInstructions-2) + "\n\t"}}}
	if err := good.Validate("at"); err != nil {
		t.Error(err)
	}
}
