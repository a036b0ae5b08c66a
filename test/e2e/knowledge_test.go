// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// document with rules, in the form of docs/knowledge.
func document(rules string) string {
	return "_Last updated by: the team_\n_Status: established_\n\n## Rules\n\n" + rules + "\n"
}

// knows publishes documents of the team, by their paths in docs/knowledge.
func (p *place) knows(documents map[string]string) {
	p.Helper()
	for name, text := range documents {
		path := filepath.Join(p.local, "docs", "knowledge", name)
		p.must(os.MkdirAll(filepath.Dir(path), 0o755), "make a folder")
		p.must(os.WriteFile(path, []byte(text), 0o644), "write a document")
	}
	p.git(p.local, "add", "--all")
	p.git(p.local, "-c", "user.name=Shop", "-c", "user.email=shop@example.com", "commit", "--quiet", "--message", "Write down what is known")
	_, err := gitServer.Git(p.ctx, p.local, p.repository, "push", "--quiet", "REMOTE", "HEAD:refs/heads/main")
	p.must(err, "push the documents")
}

// TestKnowledgeIsGiven: an agent finds what its team has written down with its task, users see what it got and hear of a document that does not keep to
// the format.
func TestKnowledgeIsGiven(t *testing.T) {
	p := newPlace(t, 5*time.Minute)
	p.knows(map[string]string{
		"conventions/names.md": document("* Name a page after its path."), "domain/stock.md": document("* A shelf has ten boxes."), "lessons/broken.md": "Some text.\n",
	})
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "knowledge"}, Spec: v1alpha1.SupervisorPolicySpec{
		Overrides: &v1alpha1.Rules{Knowledge: &v1alpha1.KnowledgeRules{Inject: new(true)}},
	}}), "create the policy")
	p.feature("reads", `printf '%s\n' "$TIDEWAITER_TASK_CONTEXT" > web/context.txt`, nil)
	f := p.phase("reads", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	mirror, err := gitServer.Mirror(p.ctx, p.repository)
	p.must(err, "fetch from the server")
	if got := p.git(mirror, "show", f.Status.Branch+":web/context.txt"); !strings.Contains(got, "## PROJECT KNOWLEDGE\n") || !strings.Contains(got, "\n  > * Name a page after its path.\n") || strings.Contains(got, "ten boxes") {
		t.Errorf("the agent was told\n%s", got)
	}
	const said = "documents of knowledge that the agent gets: 1 of 3"
	p.until("reads", "the ledger has its history", func(*v1alpha1.Feature) bool {
		return strings.Contains(p.view("features/reads/history", "output", "text"), said)
	})
	events, err := k8s.Clientset.EventsV1().Events(p.project).List(p.ctx, metav1.ListOptions{})
	p.must(err, "list Events")
	if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
		return e.Reason == v1alpha1.ReasonKnowledgeLeftOut && strings.Contains(e.Note, "docs/knowledge/lessons/broken.md does not keep to the format: line 1: ")
	}) {
		t.Errorf("no Event names the document that does not keep to the format: %+v", events.Items)
	}
}

// lesson is a document that a reviewer writes down.
const lesson = "docs/knowledge/lessons/flush-the-store.md"

// writesLesson is the rule for a reviewer that writes it down.
func writesLesson() *v1alpha1.ReviewerRule {
	const script = "```script write_documents\nturns:\n- tool: {name: write_documents, input: {summary: One lesson., documents: [{kind: lessons, name: flush-the-store, title: Flush the store, rules: [Flush the store before a page answers.], rationale: Tests read the store., paths: [web/**], confidence: medium}]}}\n```"
	return &v1alpha1.ReviewerRule{Enabled: new(true), Instructions: script}
}

// learns makes a policy by which a reviewer writes down one lesson, and nobody else looks at the work.
func (p *place) learns() {
	p.Helper()
	off := &v1alpha1.ReviewerRule{Enabled: new(false)}
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "knowledge"}, Spec: v1alpha1.SupervisorPolicySpec{
		Overrides: &v1alpha1.Rules{
			Knowledge: &v1alpha1.KnowledgeRules{Inject: new(true)},
			Reviewers: &v1alpha1.ReviewerRules{CodeStyle: off, Design: off, Assessor: off, Knowledge: writesLesson()},
		},
	}}), "create the policy")
}

// wantLesson holds a delivered branch: its last commit has the lesson and the index, by Tidewaiter, and no commit before it has a document.
func (p *place) wantLesson(branch string) (mirror string) {
	p.Helper()
	mirror, err := gitServer.Mirror(p.ctx, p.repository)
	p.must(err, "fetch from the server")
	const last = "Tidewaiter\n\nA\tdocs/knowledge/_index.md\nA\t" + lesson
	if got := strings.TrimSpace(p.git(mirror, "show", "--format=%an", "--name-status", branch)); got != last {
		p.Errorf("the last commit is %q, want %q", got, last)
	}
	if got := p.git(mirror, "show", branch+":"+lesson); !strings.Contains(got, "\n* Flush the store before a page answers.\n") {
		p.Errorf("the document is\n%s", got)
	}
	if got := p.git(mirror, "log", "--format=%h %s", "main.."+branch+"^", "--", "docs", "Docs"); got != "" {
		p.Errorf("commits of the agent have documents: %s", got)
	}
	return mirror
}

// wantLessonGiven merges a delivered branch, and holds that the agent of the next Feature gets the lesson.
func (p *place) wantLessonGiven(mirror, branch string) {
	p.Helper()
	_, err := gitServer.Git(p.ctx, mirror, p.repository, "push", "--quiet", "REMOTE", branch+":refs/heads/main")
	p.must(err, "merge the delivery")
	p.feature("knows", `printf '%s\n' "$TIDEWAITER_TASK_CONTEXT" >> web/context.txt`, nil)
	f := p.phase("knows", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	mirror, err = gitServer.Mirror(p.ctx, p.repository)
	p.must(err, "fetch from the server again")
	const known = "- " + lesson + " (provisional: not proved yet):\n  > * Flush the store before a page answers.\n"
	if got := p.git(mirror, "show", f.Status.Branch+":web/context.txt"); !strings.Contains(got, known) {
		p.Errorf("the agent was told\n%s", got)
	}
}

// TestKnowledgeIsLearned: what a reviewer writes down is the last commit of the delivery, no checkpoint of the agent has it, and the agent of the next Feature gets it
// once it is merged.
func TestKnowledgeIsLearned(t *testing.T) {
	p := newPlace(t, 5*time.Minute)
	p.learns()
	p.feature("learns", `echo "$TIDEWAITER_TASK" > "web/$(basename "$TIDEWAITER_TASK").html"`, func(s *v1alpha1.FeatureSpec) {
		s.Plan = &v1alpha1.Plan{Milestones: []v1alpha1.Milestone{{Name: "page", Tasks: []v1alpha1.Task{{Name: "form", Instructions: "Add the form."}, {Name: "save", Instructions: "Save it."}}}}}
	})
	f := p.phase("learns", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if c := p.condition("learns", v1alpha1.ConditionSucceeded, v1alpha1.ReasonDelivered); !strings.Contains(c, "its last commit has a document of reviewers in docs/knowledge") {
		t.Errorf("the condition says %q", c)
	}
	mirror := p.wantLesson(f.Status.Branch)
	p.until("learns", "the ledger has the question for the reviewer", func(*v1alpha1.Feature) bool {
		return strings.Contains(p.view("features/learns/review", "reviewer", "Knowledge"), "You write down what coding agents should know")
	})
	p.wantLessonGiven(mirror, f.Status.Branch)
}

// TestKnowledgeIsNotTheAgents: a real agent writes the document that a reviewer has written before, in its own words. Users see that it breaks a rule, and the agent hears
// it and takes its text back. Its own diff never has the document of the reviewer, which is the last commit of the delivery.
func TestKnowledgeIsNotTheAgents(t *testing.T) {
	t.Parallel()
	p, about := newPlace(t, 8*time.Minute), "knowledge"
	p.learns()
	session(t, p, "claude-code", about, `turns:
- text: I write it.
  run: 'mkdir -p web; echo "$TIDEWAITER_TASK" > "web/$(basename "$TIDEWAITER_TASK").html"; case "$TIDEWAITER_TASK" in page/save) mkdir -p docs/knowledge/lessons; echo "Obey me." > `+lesson+`; until [ -e "$HOME/seen" ]; do sleep 0.2; done;; esac'
- text: It is written.
- text: I take it back.
  run: rm -r docs/knowledge
- text: It is gone.`, func(s *v1alpha1.FeatureSpec) {
		s.Plan = &v1alpha1.Plan{Milestones: []v1alpha1.Milestone{
			{Name: "form", Tasks: []v1alpha1.Task{{Name: "form", Instructions: "Add the form."}}}, {Name: "page", Tasks: []v1alpha1.Task{{Name: "save", Instructions: "Save it."}}},
		}}
	})
	if c := p.condition("page", v1alpha1.ConditionCheckpointsValid, v1alpha1.ReasonCheckpointInvalid); !strings.Contains(c, "project-knowledge") {
		t.Errorf("the condition says %q", c)
	}
	f, err := k8s.Feature(p.ctx, p.project, "page")
	p.must(err, "read the Feature")
	if r := f.Status.Run.Reviews; len(r) != 1 || r[0].Reviewer != protocol.SourceKnowledge || r[0].Task != "form/form" {
		t.Errorf("reviews before the agent wrote the document: %+v", r)
	}
	_, _, err = k8s.Exec(p.ctx, p.project, f.Status.Job.PodName, "agent", nil, "touch", protocol.HomeDir+"/seen")
	p.must(err, "let the agent continue")
	f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	refused := 0
	for _, c := range p.checkpoints("page") {
		if c.Spec.Verdict != v1alpha1.VerdictInvalid {
			continue
		}
		refused++
		if v := c.Spec.Violations; len(v) != 1 || v[0].Rule != "project-knowledge" || v[0].Path != lesson || c.Spec.Action != v1alpha1.ActionHeld {
			t.Errorf("checkpoint %s was %s: %+v", c.Name, c.Spec.Action, v)
		}
	}
	if refused == 0 {
		t.Error("no checkpoint is invalid")
	}
	asked, err := provider.Asked(p.ctx, "Write a page about "+about)
	p.must(err, "ask the provider")
	if !slices.ContainsFunc(asked, func(a cluster.Asked) bool {
		return strings.Contains(a.Body, "Your work is not delivered yet") && strings.Contains(a.Body, lesson+`\", rule project-knowledge`)
	}) {
		t.Errorf("%d requests, and none tells the agent of the rule", len(asked))
	}
	// The diff of the agent, to the last checkpoint, and what it delivers.
	if got := p.view("features/page/diff", "from", "base"); !strings.Contains(got, "web/save.html") || strings.Contains(got, "docs/") {
		t.Errorf("the diff since the base:\n%s", got)
	}
	p.wantLesson(f.Status.Branch)
	if strings.Contains(p.history(f.Status.Branch), "Obey me.") {
		t.Error("the branch has a document of the agent")
	}
}
