// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestRIntTheReasonsOfThePlanner are in the question for the reviewer of knowledge, without secrets, and in no other.
func TestRIntTheReasonsOfThePlanner(t *testing.T) {
	t.Parallel()
	w, player := newPlanned(t, "anthropic", strings.Replace(planOfTwo, "input: {", "input: {reasons: The form comes first for AKIA"+"QYLPMN5HHHFPZAM2., ", 1))
	w.knows(map[string]string{"lessons/store.md": saying("established", "* The store has ten boxes."), "design/form.md": saying("established", "* Forms post to /save.")})
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Reviewers = policy.Reviewers{UrgencyThreshold: 100, MaxDirectives: 3,
			Design:    policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: says("- tool: {name: report_findings, input: {summary: Nothing., findings: []}}")},
			Knowledge: writesDown("- tool: {name: write_documents, input: {summary: Nothing., documents: []}}")}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	seen := 0
	for _, question := range player.Recorded() {
		_, text, is := strings.Cut(question.Body, `\n\u003cplan `)
		if is != strings.Contains(question.Body, `"name":"write_documents"`) {
			t.Errorf("a question has the reasons of the plan: %v\n%s", is, question.Body)
		}
		if is {
			if seen++; !strings.Contains(text, `\n| The form comes first for [redacted: `) || strings.Contains(text, "AKIAQYL") {
				t.Errorf("the reasons: %s", text)
			}
		}
	}
	if planned := w.planned(); seen == 0 || len(planned) != 1 || planned[0].Reasons == "" {
		t.Errorf("%d questions with reasons, planned %+v", seen, planned)
	}
}
