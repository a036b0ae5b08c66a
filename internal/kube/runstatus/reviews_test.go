// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

// TestRObsReviewsInTheStatus: a report with reviews replaces the earlier ones, one without any leaves them, and each review is new once.
func TestRObsReviewsInTheStatus(t *testing.T) {
	first := protocol.ReviewStatus{Reviewer: "CodeStyle", Task: "login/form", Outcome: "MinorDrift", Directives: 2, Summary: "Code style review:\n2 directives", Time: reports.Noon}
	second := protocol.ReviewStatus{Reviewer: "Design", Task: "login/form", Outcome: "Skipped", Summary: "the model is away", Time: reports.Noon}
	active := func(list ...protocol.ReviewStatus) protocol.StatusReport {
		return protocol.StatusReport{State: protocol.StateActive, Reviews: list}
	}
	wantFirst := v1alpha1.ReviewStatus{Reviewer: "CodeStyle", Task: "login/form", Outcome: "MinorDrift", Directives: 2, Summary: "Code style review: 2 directives", ReviewTime: at(0)}
	wantSecond := v1alpha1.ReviewStatus{Reviewer: "Design", Task: "login/form", Outcome: "Skipped", Summary: "the model is away", ReviewTime: at(0)}
	run := v1alpha1.RunStatus{}
	for _, step := range []struct {
		report    protocol.Report
		all, news []v1alpha1.ReviewStatus
	}{
		{reports.New(1, 1, active(first)), []v1alpha1.ReviewStatus{wantFirst}, []v1alpha1.ReviewStatus{wantFirst}},
		{reports.New(1, 2, active(first, second)), []v1alpha1.ReviewStatus{wantFirst, wantSecond}, []v1alpha1.ReviewStatus{wantSecond}},
		{reports.New(1, 3, active()), []v1alpha1.ReviewStatus{wantFirst, wantSecond}, nil},
		{reports.New(2, 1, active(first, second)), []v1alpha1.ReviewStatus{wantFirst, wantSecond}, nil},
		{reports.New(2, 2, active(second)), []v1alpha1.ReviewStatus{wantSecond}, nil},
	} {
		next := Fold(run, "f", step.report.Epoch, []protocol.Report{step.report})
		if diff := cmp.Diff(step.all, next.Reviews); diff != "" {
			t.Errorf("report %d of epoch %d (-want +got)\n%s", step.report.Sequence, step.report.Epoch, diff)
		}
		if news := NewReviews(run, next); len(news) != len(step.news) || len(news) == 1 && !cmp.Equal(news[0], step.news[0]) {
			t.Errorf("report %d of epoch %d: new are %+v, want %+v", step.report.Sequence, step.report.Epoch, news, step.news)
		}
		run = next
	}
}

// TestRObsDocumentsToReview: a report with reviews says which documents wait for a user, and one without any leaves them.
func TestRObsDocumentsToReview(t *testing.T) {
	looked := []protocol.ReviewStatus{{Reviewer: "Knowledge", Outcome: "Aligned", Time: reports.Noon}}
	run := v1alpha1.RunStatus{}
	for i, step := range []struct {
		report protocol.StatusReport
		want   []string
	}{
		{protocol.StatusReport{State: protocol.StateActive}, nil},
		{protocol.StatusReport{State: protocol.StateActive, Reviews: looked, KnowledgeToReview: []string{lesson}}, []string{lesson}},
		{protocol.StatusReport{State: protocol.StatePreparing}, []string{lesson}},
		{protocol.StatusReport{State: protocol.StateActive, Reviews: looked}, nil},
	} {
		run = Fold(run, "f", 1, []protocol.Report{reports.New(1, int64(i)+1, step.report)})
		if !slices.Equal(run.KnowledgeToReview, step.want) {
			t.Errorf("step %d: %q, want %q", i, run.KnowledgeToReview, step.want)
		}
	}
}

func TestRObsReviewMessage(t *testing.T) {
	for want, r := range map[string]v1alpha1.ReviewStatus{
		"After task login/form: Code style review: 3 inconsistencies, 2 cleanup directives": {Reviewer: "CodeStyle", Task: "login/form", Outcome: "MinorDrift", Summary: "Code style review: 3 inconsistencies, 2 cleanup directives"},
		"After task login: Design review: nothing has changed":                              {Reviewer: "Design", Task: "login", Outcome: "Aligned", Summary: "nothing has changed"},
		"After task login: Design review was skipped: the model is away":                    {Reviewer: "Design", Task: "login", Outcome: "Skipped", Summary: "the model is away"},
		"After task login: licenses review: nothing has changed":                            {Reviewer: "custom/licenses", Task: "login", Outcome: "Aligned", Summary: "nothing has changed"},
		"Design review: nothing has changed":                                                {Reviewer: "Design", Outcome: "Aligned", Summary: "nothing has changed"},
	} {
		if got := ReviewMessage(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTextsOfReviewers: users read the texts of a reviewer's directive also when it is over and the watchdog reports them no more.
func TestTextsOfReviewers(t *testing.T) {
	given := protocol.DirectiveStatus{
		ID: "design/1", Source: "Design", State: "Active", Type: "Functional", Priority: "Critical", Description: "Lock\nthe store.", Rationale: "two\x1b tasks write", Files: []string{"store.go"},
	}
	person := protocol.DirectiveStatus{ID: "mine", Source: "Person", State: "Active", Description: "a text that is not a reviewer's"}
	over := protocol.DirectiveStatus{ID: "design/1", Source: "Design", State: "Addressed", Message: "done"}
	unknown := protocol.DirectiveStatus{ID: "design/2", Source: "Design", State: "Dropped"}
	run := Fold(v1alpha1.RunStatus{}, "f", 1, []protocol.Report{
		reports.New(1, 1, directed(given, person)), reports.New(1, 2, directed(over, person, unknown)),
	})
	want := []v1alpha1.DirectiveStatus{
		{ID: "design/1", Source: "Design", State: "Addressed", Message: "done", Type: "Functional", Priority: "Critical", Description: "Lock the store.", Rationale: "two\uFFFD tasks write", Files: []string{"store.go"}},
		{ID: "mine", Source: "Person", State: "Active"},
		{ID: "design/2", Source: "Design", State: "Dropped"},
	}
	if diff := cmp.Diff(want, run.Directives); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestTextsThatHaveNoRoom: the texts of directives that are over go first.
func TestTextsThatHaveNoRoom(t *testing.T) {
	text := strings.Repeat("x", protocol.MaxDirectiveText)
	directive := func(id, state string) v1alpha1.DirectiveStatus {
		d := v1alpha1.DirectiveStatus{ID: id, Source: "Design", State: state, Description: text}
		for range protocol.MaxDirectiveFiles {
			d.Files = append(d.Files, text[:protocol.MaxDirectiveFile])
		}
		return d
	}
	run := v1alpha1.RunStatus{Directives: []v1alpha1.DirectiveStatus{directive("open", "Active")}}
	for range 30 {
		run.Directives = append(run.Directives, directive("over", "Addressed"))
	}
	got := Bound(run)
	if n := runSize(got); n > maxRunBytes {
		t.Errorf("a run of %d bytes", n)
	}
	if got.Directives[0].Description == "" || got.Directives[1].Description != "" || len(got.Directives) != 31 {
		t.Errorf("of %d directives, the open one has %d characters and one that is over %d", len(got.Directives), len(got.Directives[0].Description), len(got.Directives[1].Description))
	}
}
