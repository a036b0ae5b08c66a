// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// TestReviewedFeature: between two milestones and after the last one, a reviewer finds something that waits until a real agent polishes the work. Another
// reviewer gives no answer that can be used, and is skipped. The assessor finds that the work drifts, and what it says is done in the next task. Watchdog and manager are killed meanwhile.
func TestReviewedFeature(t *testing.T) {
	p := newPlace(t, 10*time.Minute)
	// The ids follow from reviewer, rule, path and quote.
	const first, drift, last = "code-style/004c5af8", "assessor/cb482e46", "code-style/1de714b7"
	finding := func(file, quote string) string {
		return fmt.Sprintf(`{path: web/%s, line: 1, quote: "%s", rule: naming, description: Name it like the others, priority: Low}`, file, quote)
	}
	script := func(turns string) string { return "```script report_findings\nturns:\n" + turns + "\n```" }
	const verdict = `- tool: {name: give_verdict, input: {verdict: MinorDrift, reason: Nobody sees when it was saved., directive: {description: Say when it was saved, path: web/save.html, line: 1, quote: "name: save"}}}`
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "reviewers"}, Spec: v1alpha1.SupervisorPolicySpec{
		Overrides: &v1alpha1.Rules{Reviewers: &v1alpha1.ReviewerRules{
			CodeStyle: &v1alpha1.ReviewerRule{Enabled: new(true), Instructions: script("- tool: {name: report_findings, input: {summary: Two names., findings: [" + finding("form.html", "name: page-form") + ", " + finding("help.html", "name: page-help") + "]}}")},
			Design:    &v1alpha1.ReviewerRule{Enabled: new(true), Instructions: script("- text: I like it.\n- text: As I said.")},
			Assessor:  &v1alpha1.ReviewerRule{Enabled: new(true), Instructions: strings.Replace(script(verdict), "report_findings", "give_verdict", 1)},
		}},
	}}), "create the policy")
	about := "reviews"
	session(t, p, "claude-code", about, `turns:
- text: I write it.
  run: 'mkdir -p web; case "$TIDEWAITER_TASK" in page/form) echo "name: page-form" > web/form.html;; page/save) echo "name: save" > web/save.html;; rest/help) sleep 15; echo "name: page-help" > web/help.html; echo today >> web/save.html;; delivery/polish/*) sed -i s/page-form/form/ web/form.html; sed -i s/page-help/help/ web/help.html;; esac'
- text: "It is written.\nDIRECTIVE `+first+`: ADDRESSED - it has the name of the others.\nDIRECTIVE `+drift+`: ADDRESSED - it says when.\nDIRECTIVE `+last+`: ADDRESSED - it has one, too."`, func(s *v1alpha1.FeatureSpec) {
		s.Plan.Milestones = []v1alpha1.Milestone{
			{Name: "page", Tasks: []v1alpha1.Task{{Name: "form", Instructions: "Add the form."}, {Name: "save", Instructions: "Save it."}}},
			{Name: "rest", Tasks: []v1alpha1.Task{{Name: "help", Instructions: "Add help."}}},
		}
	})
	f := p.until("page", "it works on the third task", func(f *v1alpha1.Feature) bool {
		return f.Status.Run != nil && f.Status.Run.Report != nil && f.Status.Run.Report.Task == "rest/help" && f.Status.Run.Report.AgentRunning
	})
	p.killWatchdog(f.Status.Job.PodName)
	p.killManager()
	f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	var reviews, tasks, given []string
	for _, r := range f.Status.Run.Reviews {
		reviews = append(reviews, strings.Join([]string{r.Task, r.Reviewer, r.Outcome, fmt.Sprint(r.Directives)}, " "))
	}
	for _, task := range f.Status.Run.Tasks {
		tasks = append(tasks, task.Name+" "+task.State)
	}
	for _, d := range f.Status.Run.Directives {
		given = append(given, d.ID+" "+d.Source+" "+d.State)
	}
	if want := []string{"page/save CodeStyle MinorDrift 1", "page/save Design Skipped 0", "page/save Assessor MinorDrift 1",
		"rest/help CodeStyle MinorDrift 1", "rest/help Design Skipped 0", "rest/help Assessor Aligned 0"}; !slices.Equal(reviews, want) {
		t.Errorf("status.run.reviews %q, want %q", reviews, want)
	}
	if want := []string{"page/form Done", "page/save Done", "rest/help Done", "delivery/polish/1 Done"}; !slices.Equal(tasks, want) {
		t.Errorf("status.run.tasks %q, want %q", tasks, want)
	}
	if want := []string{first + " CodeStyle Addressed", drift + " Assessor Addressed", last + " CodeStyle Addressed"}; !slices.Equal(given, want) {
		t.Errorf("status.run.directives %q, want %q", given, want)
	}
	history := p.history(f.Status.Branch)
	for _, line := range []string{"name: form\n", "name: save\n", "today\n", "name: help\n"} {
		if !strings.Contains(history, line) {
			t.Errorf("the branch lacks %q", line)
		}
	}
	asked, err := provider.Asked(p.ctx, "Write a page about "+about)
	p.must(err, "ask the provider")
	questions, told, early := 0, false, false
	for _, a := range asked {
		if strings.Contains(a.Body, `"name":"report_findings"`) && strings.Contains(a.Body, "The nonce of the marks") {
			questions++
		}
		if strings.Contains(a.Body, "ACTIVE DIRECTIVES") && strings.Contains(a.Body, "Name it like the others (web/form.html:1).") {
			polishes := strings.Contains(a.Body, "The work is done. Address each directive")
			told, early = told || polishes, early || !polishes
		}
	}
	if questions != 6 || !told || early { // two answers that cannot be used at each breakpoint
		t.Errorf("%d questions of reviewers; the agent was told: %v, before the last task: %v", questions, told, early)
	}
}

// TestReviewersCostNothingUnlessAsked: without a policy that enables reviewers, a Feature with milestones asks no model about its work, and its status says
// nothing of reviewers.
func TestReviewersCostNothingUnlessAsked(t *testing.T) {
	p := newPlace(t, 5*time.Minute)
	about := "silence"
	session(t, p, "claude-code", about, `turns:
- text: I write it.
  run: 'mkdir -p web; echo "name: page" > "web/$(basename "$TIDEWAITER_TASK").html"'
- text: It is written.`, func(s *v1alpha1.FeatureSpec) {
		s.Plan.Milestones = []v1alpha1.Milestone{{Name: "page", Tasks: []v1alpha1.Task{{Name: "form", Instructions: "Add the form."}}}}
	})
	f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if r := f.Status.Run; len(r.Reviews) > 0 || len(r.Directives) > 0 || len(f.Status.Reviewers) > 0 {
		t.Errorf("the status has reviews %+v, directives %+v and reviewers %+v", r.Reviews, r.Directives, f.Status.Reviewers)
	}
	asked, err := provider.Asked(p.ctx, "Write a page about "+about)
	p.must(err, "ask the provider")
	if len(asked) == 0 {
		t.Fatal("the provider has no request of the agent")
	}
	for _, a := range asked {
		if strings.Contains(a.Body, "The nonce of the marks") {
			t.Errorf("the watchdog asked a model: %.300s", a.Body)
		}
	}
}
