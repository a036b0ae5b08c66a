// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// idOf a finding, without the reviewer's own part.
func idOf(reviewer, rule, path, quote string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{reviewer, rule, path, quote}, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// TestRDirAnAnswerOfAnAgentIsChecked: an agent says each time that it has addressed a directive, and has not. Its reviewer opens the directive once more, and then
// a user decides. Crashes change nothing about it. Without polish tasks, the agent gets the directive with its next task.
func TestRDirAnAnswerOfAnAgentIsChecked(t *testing.T) {
	t.Parallel()
	for step, times := range map[string][]int{"": {0}, "reviewed": {1, 2, 3}, "directives of reviewers": {2, 3}} {
		for _, n := range times {
			t.Run(strings.TrimSpace(step+" "+strings.Repeat("I", n)), func(t *testing.T) {
				t.Parallel()
				answersInVain(t, step, n)
			})
		}
	}
}

func answersInVain(t *testing.T, step string, n int) {
	id := "code-style/" + idOf(protocol.SourceCodeStyle, "naming", "web/form.html", "page/form")
	still := strings.Replace(oneFinding, "findings:", "stillThere: [{id: "+id+", path: web/form.html, quote: page/form}], findings:", 1)
	w, player := newReviewed(t, still, deterministic, func(o *protocol.Orders) { o.Policy.Reviewers.PolishTasks = 0 })
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command = []string{"sh", "-c", byHand + `case "$TIDEWAITER_TASK" in page/form) ` + w.waitFor("form") + `;; page/save) ` + w.waitFor("save") + `;; *) ` + w.waitFor("show") + `;; esac`}
	})
	var probe func(string) error
	if step != "" {
		probe = pullAt(step, n)
	}
	run := w.start(1, probe)
	pulled := false
	goesOn := func() {
		if step != "" && !pulled {
			if err := run.wait(); !errors.Is(err, errPulled) {
				t.Fatalf("the watchdog ended with %v", err)
			}
			pulled = true
			run.resume(false)
		}
	}
	for i, task := range []string{"page/form", "page/save", "list/show"} {
		if i > 0 && i == n {
			goesOn()
		}
		c := w.connect()
		c.patch("op", newFile("web/"+path.Base(task)+".html", task))
		if i > 0 {
			if text, ok := c.try("directive_settle", map[string]any{"directive_id": id, "outcome": "ADDRESSED", "reason": "renamed"}); !ok {
				t.Fatalf("after %s: %s", task, text)
			}
		}
		c.complete()
		w.signal(path.Base(task))
	}
	if n == 3 {
		goesOn()
	}
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff([]string{"page/form MinorDrift CodeStyle Cleanup web/form.html NotShown", "page/save MinorDrift Known", "list/show MinorDrift Known"}, w.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	asked := player.Recorded()
	if len(asked) != 3 || strings.Contains(asked[0].Body, "<answered ") || !strings.Contains(asked[1].Body, id+`: Name it like the others (web/form.html:1). Answer: `) || !strings.Contains(asked[2].Body, id+": Still there after your answer: ") {
		t.Errorf("%d questions: %+v", len(asked), asked)
	}
	s := w.intake.Status()
	if len(s.Directives) != 1 || s.Directives[0].State != protocol.DirectiveEscalated || !strings.HasPrefix(s.Directives[0].Message, "its reviewer still finds it in the work after two answers of the agent") || s.Directives[0].Description == "" {
		t.Errorf("directives in the status: %+v", s.Directives)
	}
	const again, left = "; 1 answered directive is still there and open again. ", "; 1 directive is still there after two answers, and a user decides. "
	if len(s.Reviews) != 3 || !strings.Contains(s.Reviews[1].Summary, again) || !strings.Contains(s.Reviews[2].Summary, left) {
		t.Errorf("reviews in the status: %+v", s.Reviews)
	}
}
