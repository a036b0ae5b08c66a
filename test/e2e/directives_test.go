// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// directive is how far one of a Feature is; the zero value where it is not known.
func directive(f *v1alpha1.Feature, id string) v1alpha1.DirectiveStatus {
	if f.Status.Run != nil {
		for _, d := range f.Status.Run.Directives {
			if d.ID == id {
				return d
			}
		}
	}
	return v1alpha1.DirectiveStatus{}
}

// TestDirectivesAndAnswers is not parallel: it takes the manager away from everybody. Meanwhile a person gives directives to real CLIs at work,
// and answers a question. When the manager is back, each model is told with its next call, once, follows, and says so; the status shows it.
func TestDirectivesAndAnswers(t *testing.T) {
	p := newPlace(t, 10*time.Minute)
	for _, runtime := range oneOfEachDialect {
		p.feature(runtime, "", func(s *v1alpha1.FeatureSpec) {
			s.Agent = v1alpha1.Agent{Runtime: runtime, Image: agentImage(t, runtime)}
			s.Plan = &v1alpha1.Plan{AllowedAreas: []string{runtime + "/**"}}
			s.Prompt = scripted("Write a page about harbours by "+runtime+".", `turns:
- text: I begin.
  run: mkdir -p `+runtime+` && echo one > `+runtime+`/one.html
- until: "Take the labels from the dictionary."
  text: I take the dictionary.
  run: echo dictionary > `+runtime+`/dict.html
- text: "It is written.\nDIRECTIVE use-dict: ADDRESSED - by dict.html\nDIRECTIVE other: ADDRESSED - by nothing"`)
		})
	}
	p.feature("colour", patches+`
until mcpagent ask_user question_id=q1 question='Which colour shall it have?' > answer && grep -q '"status":"answered"' answer; do sleep 1; done
mcpagent directive_settle directive_id=use-dict outcome='ALREADY HANDLED' reason='there is no label'
mcpagent task_complete summary="It is done."`, deterministic("colour/**"))
	for _, runtime := range oneOfEachDialect {
		p.until(runtime, "a turn", func(f *v1alpha1.Feature) bool { return f.Status.Run != nil && f.Status.Run.Turn >= 1 })
	}
	p.phase("colour", v1alpha1.PhaseAwaitingInput, v1alpha1.ReasonAwaitingInput)

	p.scaleManager(0)
	give := func(s *v1alpha1.FeatureSpec) {
		s.Directives = []v1alpha1.Directive{{ID: "use-dict", Priority: "Critical", Description: "Take the labels from the dictionary.", Rationale: "They are translated there."}}
	}
	for _, runtime := range oneOfEachDialect {
		p.change(runtime, give)
	}
	p.change("colour", func(s *v1alpha1.FeatureSpec) {
		give(s)
		s.Answers = []v1alpha1.Answer{{Question: "q1", Text: "teal"}}
	})
	p.scaleManager(2)

	for _, runtime := range oneOfEachDialect {
		f := p.phase(runtime, v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
		if d := directive(f, "use-dict"); d.State != "Addressed" || d.Source != "Person" || !strings.Contains(d.Message, "by dict.html") || len(f.Status.Run.Directives) != 1 {
			t.Errorf("%s: directives: %+v", runtime, f.Status.Run.Directives)
		}
		if f.Status.Attempt != 1 || !strings.Contains(p.history(f.Status.Branch), runtime+"/dict.html") {
			t.Errorf("%s: attempt %d, or the page of the directive is not delivered", runtime, f.Status.Attempt)
		}
		body := said(p, "harbours by "+runtime)
		// The script in the prompt has the words once.
		if n := strings.Count(body, "Directive use-dict (Critical, before anything else): Take the labels from the dictionary."); n != 1 {
			t.Errorf("%s: the model was told %d times: %.3000s", runtime, n, body)
		}
	}
	f := p.phase("colour", v1alpha1.PhaseDelivered, v1alpha1.ReasonNothingChanged)
	if d := directive(f, "use-dict"); d.State != "Addressed" || !strings.Contains(d.Message, "there is no label") {
		t.Errorf("directives: %+v", f.Status.Run.Directives)
	}
	if d := directive(f, "answer/q1"); d.State != "Addressed" {
		t.Errorf("the answer: %+v", f.Status.Run.Directives)
	}
}

// TestDeliveryConcernsAnotherFeature: while a real CLI works, another Feature of its project delivers a change to its area. People see a condition
// with commit and path, and its model is told with its next call, once.
func TestDeliveryConcernsAnotherFeature(t *testing.T) {
	t.Parallel()
	const runtime = "claude-code"
	p, about := newPlace(t, 6*time.Minute), "neighbours"
	session(t, p, runtime, about, `turns:
- text: I begin.
  run: mkdir -p web && echo one > web/one.html
- until: "Feature other has delivered commit"
  text: I have a look at it.
  run: echo two > web/two.html
- text: It is written.`)
	p.until("page", "a turn", func(f *v1alpha1.Feature) bool { return f.Status.Run != nil && f.Status.Run.Turn >= 1 })
	p.feature("other", "echo shared > web/shared.html", nil)
	other := p.phase("other", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if n := other.Status.Run.Final; len(n.Paths) != 1 || n.Paths[0] != "web/shared.html" || n.PathCount != 1 {
		t.Errorf("the final report of the delivery: %+v", n)
	}
	f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionDeliveriesDisjoint)
	if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, other.Status.Head[:12]) || !strings.Contains(c.Message, `"web/shared.html" (area web/**)`) {
		t.Errorf("condition %+v", c)
	}
	if d := directive(f, "delivered/other"); d.State != "Addressed" || d.Source != "Feature" {
		t.Errorf("directives: %+v", f.Status.Run.Directives)
	}
	body := said(p, about)
	if n := strings.Count(body, "Feature other has delivered commit "+other.Status.Head[:12]); n != 1 || !strings.Contains(body, `web/shared.html`) {
		t.Errorf("the model was told %d times: %.3000s", n, body)
	}
}
