// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestRStyleAReviewerComparesWithTheRepository: it sees files of the base that are like the changed ones, without secrets, and the rules of its kind that the
// team has written down. What the agent has written is not among them.
func TestRStyleAReviewerComparesWithTheRepository(t *testing.T) {
	t.Parallel()
	w, player := newReviewed(t, "- tool: {name: report_findings, input: {summary: Nothing., findings: []}}", func(o *protocol.Orders) {
		o.Tasks = []protocol.Task{{Name: "page/form", Instructions: "Add the form."}}
		o.Policy.Reviewers.Design = policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: says("- tool: {name: report_findings, input: {summary: Nothing., findings: []}}")}
		o.Agent.Command[2] += `; mkdir -p pages; echo new > "pages/$(basename "$TIDEWAITER_TASK").md"`
		o.Plan = protocol.Plan{}
	})
	w.write("seed/web/form-key.html", "<p>AKIA"+"QYLPMN5HHHFPZAM2</p>\n")
	w.write("seed/guides/first.md", "# First\n")
	w.write("seed/guides/binary.md", "\x00\x01")
	w.knows(map[string]string{
		"conventions/names.md": saying("established", "* Name a page after its path."), "design/form.md": saying("established", "* A form posts to /save."),
		"lessons/flush.md": saying("established", "* Flush before the answer."),
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	asked := player.Recorded()
	if len(asked) != 2 {
		t.Fatalf("%d questions: %v", len(asked), w.reviews())
	}
	for i, question := range asked {
		body, style := question.Body, i == 0
		for part, want := range map[string]bool{
			`== web/index.html\n  \u003ch1\u003eShop\u003c/h1\u003e\n`: style, `== web/form-key.html\n  \u003cp\u003e[redacted: `: style, `== guides/first.md\n  # First\n`: style,
			`Name a page after its path.`: style, `A form posts to /save.`: !style, `Flush before the answer.`: false,
			`== guides/binary.md`: false, `== web/form.html\n  page/form`: false, `AKIAQYL`: false,
		} {
			if strings.Contains(body, part) != want {
				t.Errorf("question %d has %q: %v\n%s", i, part, !want, body)
			}
		}
	}
}
