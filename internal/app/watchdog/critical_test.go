// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// criticalID is the part of a directive's id that the file has which its task writes.
func criticalID() string {
	return idOf(protocol.SourceDesign, "locking", "web/form.html", "page/form")
}

// newCritical is a world with three tasks, in which the reviewer of design finds a Critical problem after the first one. The tasks of the first milestone have a gate.
func newCritical(t *testing.T, gate string) *world {
	t.Helper()
	found := strings.NewReplacer("rule: naming", "rule: locking", "priority: Low", "priority: Critical", "Name it like the others", "Lock the form").Replace(oneFinding)
	w, _ := newReviewed(t, "- text: nothing", func(o *protocol.Orders) {
		o.Policy.Reviewers.CodeStyle.Enabled = nil
		o.Policy.Reviewers.Design = policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: says(found)}
		o.Policy.Reviewers.PolishTasks = 0
		o.Gates = []protocol.Gate{{Name: "unit", Command: []string{"sh", "-c", gate}, Timeout: time.Minute}}
		o.Tasks[0].Gates, o.Tasks[1].Gates = []string{"unit"}, []string{"unit"}
	})
	return w
}

// did are the names of the tasks that an agent began, in their order.
func (w *world) did() (names []string) {
	for line := range strings.Lines(w.tasks()) {
		name, _, _ := strings.Cut(line, ":")
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// proved says how often a gate of a task has run.
func (w *world) proved(task string) (n int) {
	records, _ := w.recorded()
	for _, r := range records {
		if r.GateRan != nil && r.GateRan.Task == task {
			n++
		}
	}
	return n
}

// TestRDirACriticalDirectiveIsATask before the next one, once, with the gates of its milestone, and no reviewer looks at it. Crashes change nothing about it.
func TestRDirACriticalDirectiveIsATask(t *testing.T) {
	t.Parallel()
	for step, times := range map[string]int{"": 0, "reviewed": 1, "task added": 1, "task begun": 2} {
		t.Run("crash after "+step, func(t *testing.T) {
			t.Parallel()
			w := newCritical(t, "true")
			run := w.crashesAt(step, times)
			wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			task := "directive/design/" + criticalID()
			if diff := cmp.Diff([]string{"page/form", task, "page/save", "list/show"}, w.did()); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"page/form MinorDrift Design Functional web/form.html", "page/save Aligned Known"}, w.reviews()); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
			if n := w.proved(task); n != 1 {
				t.Errorf("%d gates of the task have run", n)
			}
			if got := w.delivered("web/" + criticalID() + ".html"); got != task {
				t.Errorf("what the task has written is delivered as %q", got)
			}
			if got := w.tasks(); !strings.Contains(got, task+": A reviewer has found a problem that the next tasks build on. Address directive design/"+criticalID()+" of ACTIVE DIRECTIVES, or explain why it does not apply. Change nothing else. It says: Lock the form (web/form.html:1).") {
				t.Errorf("instructions:\n%s", got)
			}
			records, _ := w.recorded()
			for _, r := range records {
				if o := r.Orders; o != nil && len(o.Tasks) == 4 && (o.Tasks[1].Name != task || !o.Tasks[1].Continue) {
					t.Errorf("orders with %+v", o.Tasks)
				}
			}
		})
	}
}

// TestACriticalDirectiveThatCannotBeDone is Escalated. Its changes leave the workspace, and the work is delivered without them.
func TestACriticalDirectiveThatCannotBeDone(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"", "task aborted"} {
		t.Run("crash after "+step, func(t *testing.T) {
			t.Parallel()
			w := newCritical(t, "[ ! -e web/"+criticalID()+".html ]")
			w.intake.Order(func(o *protocol.Orders) { o.Policy.Supervision.MaxCorrections = 0 })
			run := w.crashesAt(step, 1)
			f := run.finish()
			wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if strings.Contains(f.Message, "directive/") {
				t.Errorf("message %q", f.Message)
			}
			if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); strings.Contains(got, criticalID()) || !strings.Contains(got, "web/save.html") {
				t.Errorf("branch changes %q", got)
			}
			s := w.intake.Status()
			if len(s.Directives) != 1 || s.Directives[0].State != protocol.DirectiveEscalated || !strings.HasPrefix(s.Directives[0].Message, "the task for it could not be done: ") || s.Directives[0].Description == "" {
				t.Errorf("directives in the status: %+v", s.Directives)
			}
			_, state := w.recorded()
			if have := state.Tasks["directive/design/"+criticalID()]; !have.Aborted || state.Spent != 0 {
				t.Errorf("the task in the journal: %+v", have)
			}
			if diff := cmp.Diff([]journal.TaskAdded{{Name: "directive/design/" + criticalID(), Directives: []string{"design/" + criticalID()}, After: "page/form"}}, state.Added, cmpopts.IgnoreFields(journal.TaskAdded{}, "Text")); diff != "" {
				t.Errorf("added tasks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWorkThatIsDoneDoesNotWait: an agent that asks in the task for a Critical directive after the last listed one does not keep the work from its delivery. Before
// a listed task it waits for the answer, as in that one.
func TestWorkThatIsDoneDoesNotWait(t *testing.T) {
	t.Parallel()
	for listed, want := range map[int]policy.Asking{1: policy.AskGuess, 2: policy.AskWait} {
		t.Run(fmt.Sprint(listed), func(t *testing.T) {
			t.Parallel()
			w := newCritical(t, "true")
			w.intake.Order(func(o *protocol.Orders) { o.Tasks = o.Tasks[:listed] })
			wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			records, _ := w.recorded()
			began := 0
			for _, r := range records {
				if b := r.TaskBegun; b != nil && protocol.Directs(b.Name) {
					began++
					if got := b.Policy.Questions.Asking; got != want {
						t.Errorf("it began with %q, want %q", got, want)
					}
				}
			}
			if began != 1 {
				t.Errorf("%d such tasks began: %v", began, w.did())
			}
		})
	}
}

// TestTwoCriticalDirectivesOfOneReview: each one has a task with its own words, one after the other.
func TestTwoCriticalDirectivesOfOneReview(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, "- text: nothing", func(o *protocol.Orders) {
		o.Policy.Reviewers.CodeStyle.Enabled = nil
		o.Policy.Reviewers.Design = policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: says(twoFindings)}
		o.Policy.Reviewers.PolishTasks = 0
		o.Tasks = o.Tasks[:2]
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	one, two := "directive/design/"+criticalID(), "directive/design/"+idOf(protocol.SourceDesign, "closing", "web/form.html", "page/form")
	if diff := cmp.Diff([]string{"page/form", one, two, "page/save"}, w.did()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	for _, says := range []string{one + ": A reviewer has found", "It says: Lock the form (", two + ": A reviewer has found", "It says: Close the form ("} {
		if !strings.Contains(w.tasks(), says) {
			t.Errorf("no %q in the instructions:\n%s", says, w.tasks())
		}
	}
}

const twoFindings = `- tool: {name: report_findings, input: {summary: Two problems., findings: [{path: web/form.html, line: 1, quote: page/form, rule: locking, description: Lock the form, priority: Critical}, {path: web/form.html, line: 1, quote: page/form, rule: closing, description: Close the form, priority: Critical}]}}`
