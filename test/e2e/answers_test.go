// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// held makes an Output template that asks for a summary and puts a frame around answers.
func (p *place) held() {
	p.Helper()
	p.must(k8s.Create(p.ctx, &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "report"}, Spec: v1alpha1.TemplateSpec{
		Direction: v1alpha1.DirectionOutput, Text: ptr.To("Report of an agent:\n{{OUTPUT}}\n(end of report)"), AnswerChecks: v1alpha1.AnswerChecks{
			RequiredSections: []string{"Summary"}, ForbiddenPhrases: []string{"as an AI"}, AutoCorrect: &v1alpha1.AutoCorrect{TrimSpace: true},
		},
	}}), "create the Output template")
	inForce(p.ctx, p.T, p.project, "report")
}

// finals are the turns of a Feature that answered without a call of a tool, each whole.
func (p *place) finals() []protocol.Turn {
	p.Helper()
	var list protocol.Turns
	p.must(json.Unmarshal([]byte(p.view("features/page/turns", "output", "json")), &list), "read the turns")
	var found []protocol.Turn
	for _, turn := range list.Turns {
		var one protocol.Turns
		p.must(json.Unmarshal([]byte(p.view("features/page/turns", "output", "json", "call", strconv.FormatInt(turn.Sequence, 10))), &one), "read a turn")
		if x := one.Turns[0]; x.Role == "primary" && x.Text != "" && len(x.Tools) == 0 && x.Text != "Work on a task" { // a title
			found = append(found, x)
		}
	}
	return found
}

// TestSUP3AnswersAreCheckedAndFormatted: the real CLIs get an answer that keeps to the rules, in its frame; one that does not is asked for
// again, without the CLI seeing it (SUP-7). The ledger has every answer as it came, what was wrong with it, and what the CLI got.
func TestSUP3AnswersAreCheckedAndFormatted(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimesWithSessions {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 5*time.Minute), "reports by "+runtime
			p.held()
			session(t, p, runtime, about, `turns:
- text: I write it. This is no final answer.
  run: mkdir -p web && echo page > web/page.html
- text: "As an AI, I have written it."
- text: "  ## Summary\nIt is written.  "`)
			p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
			const want = "Report of an agent:\n## Summary\nIt is written.\n(end of report)"
			finals := p.finals()
			if len(finals) != 2 || finals[0].Reason != protocol.ReasonAnswerRejected || len(finals[0].Violations) != 2 || finals[1].Formatted != want || len(finals[1].Violations) != 0 {
				t.Errorf("answers: %+v", finals)
			}
			log := ""
			for line := range strings.Lines(p.everything()["the log of agent"]) {
				if !strings.Contains(line, "```script") { // some CLIs print their prompt
					log += line
				}
			}
			if !strings.Contains(log, "(end of report)") || strings.Contains(log, "As an AI") {
				t.Errorf("the agent's log: %s", log)
			}
			told := false
			asked, err := provider.Asked(p.ctx, about)
			p.must(err, "ask the provider")
			for _, a := range asked {
				told = told || strings.Contains(a.Body, "[SUPERVISOR] Your answer was not accepted") && strings.Contains(a.Body, "As an AI, I have written it.")
			}
			if !told {
				t.Error("the model was not told what was wrong with its answer")
			}
		})
	}
}

// TestSUP7ExhaustedRetriesFailTheTask: a model that does not keep to the rules is asked so often, and then the Feature is blocked with what is
// wrong. What the agent wrote is kept and not delivered.
func TestSUP7ExhaustedRetriesFailTheTask(t *testing.T) {
	t.Parallel()
	for _, runtime := range oneOfEachDialect {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 5*time.Minute), "failures by "+runtime
			p.held()
			session(t, p, runtime, about, `turns:
- text: I write it.
  run: mkdir -p web && echo page > web/page.html
- text: First.
- text: Second.
- text: Third.
- text: Fourth.
- text: Fifth.`)
			f := p.phase("page", v1alpha1.PhaseBlocked, v1alpha1.ReasonAnswerRejected)
			if message := p.condition("page", v1alpha1.ConditionSucceeded, v1alpha1.ReasonAnswerRejected); !strings.Contains(message, `The section "Summary" is missing`) || !strings.Contains(message, "2 retries did not help") {
				t.Errorf("message %q", message)
			}
			finals := p.finals() // some CLIs ask once more before they are ended
			if len(finals) < 3 || f.Status.Attempt != 1 {
				t.Errorf("attempt %d, answers %+v", f.Status.Attempt, finals)
			}
			for _, turn := range finals {
				if turn.Reason != protocol.ReasonAnswerRejected || turn.Formatted != "" {
					t.Errorf("an answer was accepted: %+v", turn)
				}
			}
			if f.Status.Head == "" || f.Status.Checkpoints.Valid == 0 {
				t.Errorf("head %q, checkpoints %+v", f.Status.Head, f.Status.Checkpoints)
			}
			p.wantNothingSmuggled(f)
		})
	}
}
