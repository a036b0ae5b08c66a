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
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestReviewedFeature: a real agent works on six tasks of two milestones. After each milestone, the reviewer of code style finds something that waits until the
// agent polishes the work. The reviewer of design finds a Critical problem, for which the agent has a task before the next one. The assessor finds that the work
// drifts, and the agent gets that with its next task. One reviewer is away after the first milestone, and looks after the next task instead. The reviewer of
// knowledge writes down a lesson, which is the last commit of the delivery, and which the next Feature gets. Watchdog and manager are killed twice meanwhile.
func TestReviewedFeature(t *testing.T) {
	p := newPlace(t, 10*time.Minute)
	// The ids follow from reviewer, rule, path and quote.
	const first, drift, open, last = "code-style/004c5af8", "assessor/cb482e46", "design/d6a63995", "code-style/1de714b7"
	finding := func(file, quote, priority string) string {
		return fmt.Sprintf(`{path: web/%s, line: 1, quote: "%s", rule: naming, description: Name it like the others, priority: %s}`, file, quote, priority)
	}
	reviewer := func(script string) *v1alpha1.ReviewerRule {
		return &v1alpha1.ReviewerRule{Enabled: new(true), Instructions: script}
	}
	script := func(turn string) string { return "```script report_findings\nturns:\n" + turn + "\n```" }
	finds := func(findings ...string) string {
		return "- tool: {name: report_findings, input: {summary: So it is., findings: [" + strings.Join(findings, ", ") + "]}}"
	}
	const verdict = `- tool: {name: give_verdict, input: {verdict: MinorDrift, reason: Nobody sees when it was saved., directive: {description: Say when it was saved, path: web/save.html, line: 1, quote: "name: save"}}}`
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "reviewers"}, Spec: v1alpha1.SupervisorPolicySpec{
		Overrides: &v1alpha1.Rules{Knowledge: &v1alpha1.KnowledgeRules{Inject: new(true)}, Reviewers: &v1alpha1.ReviewerRules{
			CodeStyle: reviewer(script(finds(finding("form.html", "name: page-form", "Low"), finding("help.html", "name: page-help", "Low")))),
			Design:    reviewer(script(finds(finding("list.html", "open: all", "Critical")))),
			Knowledge: writesLesson(),
			Assessor:  reviewer(strings.Replace(script(verdict), "report_findings", "give_verdict", 1)),
			Custom:    []v1alpha1.CustomReviewer{{Name: "away", Instructions: script(strings.Replace(finds(), "- ", "- fail: {status: 422}\n  ", 1))}},
		}},
	}}), "create the policy")
	about := "reviews"
	// A task for a Critical directive continues in the session of the task before it.
	const work = `run: 'mkdir -p web; until_told() { until [ -e "$HOME/$1" ]; do sleep 0.2; done; }; case "$TIDEWAITER_TASK" in page/form) echo "name: page-form" > web/form.html;; page/save) until_told once; echo "name: save" > web/save.html;; page/list) echo "open: all" > web/list.html;; directive/*) sed -i s/all/members/ web/list.html;; rest/help) echo "name: page-help" > web/help.html; echo today >> web/save.html;; rest/about) until_told twice; echo "name: about" > web/about.html;; rest/end) echo "name: end" > web/end.html;; delivery/polish/*) sed -i s/page-form/form/ web/form.html; sed -i s/page-help/help/ web/help.html;; esac'`
	const answer = `"It is written.\nDIRECTIVE ` + first + `: ADDRESSED - it has the name of the others.\nDIRECTIVE ` + drift + `: ADDRESSED - it says when.\nDIRECTIVE ` + open + `: ADDRESSED - it is for members.\nDIRECTIVE ` + last + `: ADDRESSED - it has one, too."`
	session(t, p, "claude-code", about, "turns:\n- text: I write it.\n  "+work+"\n- text: "+answer+"\n- text: I change it.\n  "+work+"\n- text: "+answer, func(s *v1alpha1.FeatureSpec) {
		s.Plan.Milestones = []v1alpha1.Milestone{
			{Name: "page", Tasks: []v1alpha1.Task{{Name: "form", Instructions: "Add the form."}, {Name: "save", Instructions: "Save it."}, {Name: "list", Instructions: "List all."}}},
			{Name: "rest", Tasks: []v1alpha1.Task{{Name: "help", Instructions: "Add help."}, {Name: "about", Instructions: "Say who made it."}, {Name: "end", Instructions: "Add an end."}}},
		}
	})
	for _, during := range []struct{ task, until string }{{"page/save", "once"}, {"rest/about", "twice"}} {
		f := p.until("page", "it works on "+during.task, func(f *v1alpha1.Feature) bool {
			return f.Status.Run != nil && f.Status.Run.Report != nil && f.Status.Run.Report.Task == during.task && f.Status.Run.Report.AgentRunning
		})
		p.killWatchdog(f.Status.Job.PodName)
		p.killManager()
		_, _, err := k8s.Exec(p.ctx, p.project, f.Status.Job.PodName, "agent", nil, "touch", protocol.HomeDir+"/"+during.until)
		p.must(err, "let the agent continue")
	}
	f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
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
	if want := []string{"page/list CodeStyle MinorDrift 1", "page/list Design MinorDrift 1", "page/list Knowledge Aligned 0", "page/list custom/away Skipped 0", "page/list Assessor MinorDrift 1", "rest/help custom/away Aligned 0",
		"rest/end CodeStyle MinorDrift 1", "rest/end Design Aligned 0", "rest/end Knowledge Aligned 0", "rest/end custom/away Aligned 0", "rest/end Assessor Aligned 0"}; !slices.Equal(reviews, want) {
		t.Errorf("status.run.reviews %q, want %q", reviews, want)
	}
	if want := []string{"page/form Done", "page/save Done", "page/list Done", "directive/" + open + " Done", "rest/help Done", "rest/about Done", "rest/end Done", "delivery/polish/1 Done"}; !slices.Equal(tasks, want) {
		t.Errorf("status.run.tasks %q, want %q", tasks, want)
	}
	if want := []string{first + " CodeStyle Addressed", open + " Design Addressed", drift + " Assessor Addressed", last + " CodeStyle Addressed"}; !slices.Equal(given, want) {
		t.Errorf("status.run.directives %q, want %q", given, want)
	}
	history := p.history(f.Status.Branch)
	for _, line := range []string{"name: form\n", "name: save\n", "today\n", "open: members\n", "name: help\n", "name: about\n", "name: end\n"} {
		if !strings.Contains(history, line) {
			t.Errorf("the branch lacks %q", line)
		}
	}
	asked, err := provider.Asked(p.ctx, "Write a page about "+about)
	p.must(err, "ask the provider")
	questions, told, early := 0, false, false
	for _, a := range asked {
		if strings.Contains(a.Body, "The nonce of the marks") {
			if strings.Contains(a.Body, `"name":"report_findings"`) {
				questions++
			}
			continue
		}
		if strings.Contains(a.Body, "ACTIVE DIRECTIVES") && strings.Contains(a.Body, "Name it like the others (web/form.html:1).") {
			polishes := strings.Contains(a.Body, "The work is done. Address each directive")
			told, early = told || polishes, early || !polishes
		}
	}
	if questions != 7 || !told || early { // one of them has no answer
		t.Errorf("%d questions of reviewers; the agent was told: %v, before the last task: %v", questions, told, early)
	}
	p.wantLessonGiven(p.wantLesson(f.Status.Branch), f.Status.Branch)
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
