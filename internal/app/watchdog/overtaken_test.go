// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// moreWork orders another task, which writes a page.
func (w *world) moreWork() { w.list("login", "save") }

// otherDocuments is a review that writes another document.
func (w *world) otherDocuments() {
	w.learned(map[string]string{"lessons/flush.md": saying("provisional", "* Flush before the answer.")})
}

// noDocuments is a policy that takes documents back.
func (w *world) noDocuments() {
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Knowledge.Deliver, o.Policy.Hash = policy.KnowledgeOff, "off" })
}

// newUnheard is a world whose server has taken a commit with a document, and whose watchdog has ended before it heard that.
func newUnheard(t *testing.T) (w *world, run *pod, pushed string) {
	t.Helper()
	w, run = newLearned(t, map[string]string{"design/form.md": saying("provisional", "* Forms post to /save.")}, func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo good > web/$TIDEWAITER_TASK.html`
	}, pullAt("pushed", 1))
	if err := run.wait(); !errors.Is(err, errPulled) {
		t.Fatal(err)
	}
	if pushed = w.branch(); pushed == "" {
		t.Fatal("nothing is pushed")
	}
	return w, run, pushed
}

// TestRKnowWhatFollowsALostAnswer of the server: other work, other documents or none are delivered after the commit with documents that the branch has.
func TestRKnowWhatFollowsALostAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world)
		// want are the documents of reviewers that the delivery has.
		want string
	}{
		"more work":                    {(*world).moreWork, "design/form.md"},
		"other documents":              {(*world).otherDocuments, "design/form.md lessons/flush.md"},
		"no documents":                 {(*world).noDocuments, ""},
		"more work, and no documents":  {func(w *world) { w.moreWork(); w.noDocuments() }, ""},
		"more work and more documents": {func(w *world) { w.moreWork(); w.otherDocuments() }, "design/form.md lessons/flush.md"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, run, pushed := newUnheard(t)
			c.change(w)
			run.watch(nil)
			f := run.finish()
			wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantFollows(f.Head, pushed)
			got := strings.Fields(w.git("-C", w.origin, "diff", "--name-only", "--relative=docs/knowledge", "main", f.Head, "--", "docs/knowledge/design", "docs/knowledge/lessons"))
			if strings.Join(got, " ") != c.want {
				t.Errorf("documents %q, want %q", got, c.want)
			}
		})
	}
}

// TestNothingIsDeliveredBeforeOrdersAreHeard: a watchdog that begins again has the policy of before in its journal, and waits for the one of now.
func TestNothingIsDeliveredBeforeOrdersAreHeard(t *testing.T) {
	t.Parallel()
	w, run, pushed := newUnheard(t)
	w.noDocuments()
	w.intake.Refuse(503)
	asked := w.intake.Polls()
	run.watch(nil)
	w.eventually("the watchdog has asked for orders twice", func() bool { return w.intake.Polls() > asked+1 })
	if w.branch() != pushed {
		t.Errorf("branch %s, want %s", w.branch(), pushed)
	}
	w.intake.Refuse(0)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantFollows(f.Head, pushed)
}

// wantFollows checks that the branch is a head that follows a commit that was pushed before.
func (w *world) wantFollows(head, pushed string) {
	w.t.Helper()
	if w.branch() != head || head == pushed || w.git("-C", w.origin, "merge-base", head, pushed) != pushed {
		w.t.Errorf("branch %s and head %s, want one that follows %s", w.branch(), head, pushed)
	}
}

// TestACrashAfterALostAnswer: whatever step the watchdog ends after, it makes the same commit again, and delivers it.
func TestACrashAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){"more work": (*world).moreWork, "no documents": (*world).noDocuments} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, run, pushed := newUnheard(t)
			change(w)
			plugs := newPlugs(t, after("knowledge committed", "knowledge journaled", "pushed", "delivery journaled"))
			run.watch(plugs.probe())
			f := plugs.processes(run).finish()
			wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantFollows(f.Head, pushed)
			made := 0
			records, _ := w.recorded()
			for _, r := range records {
				if r.KnowledgeCommitted != nil && r.KnowledgeCommitted.After == pushed {
					made++
				}
			}
			if made != 1 {
				t.Errorf("the journal has %d commits that follow the pushed one, want 1", made)
			}
		})
	}
}

// TestAnApprovalAfterALostAnswer names the commit that follows the pushed one, and holds.
func TestAnApprovalAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w, run, pushed := newUnheard(t)
	w.intake.Order(approval)
	w.otherDocuments()
	run.watch(nil)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	if !strings.Contains(f.Message, "; its last commit also follows "+pushed+", which the branch had before") || w.branch() != pushed {
		t.Errorf("branch %s: %s", w.branch(), f.Message)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = f.Head })
	wantFinal(t, w.seal(2), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantFollows(f.Head, pushed)
}

// TestAUserPushesAfterALostAnswer: nothing is pushed over the commit of the user. Once it is gone, the work is delivered after the pushed commit.
func TestAUserPushesAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w, run, pushed := newUnheard(t)
	w.moreWork()
	theirs := w.git("-C", w.origin, "-c", "user.name=B", "-c", "user.email=b@example.com", "commit-tree", pushed+"^{tree}", "-p", pushed, "-m", "Theirs")
	w.git("-C", w.origin, "update-ref", "refs/heads/tidewaiter/login", theirs)
	run.watch(nil)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonPushConflict)
	if w.branch() != theirs || !strings.Contains(f.Message, "branch tidewaiter/login on the server has commits that the delivery does not have") {
		t.Errorf("branch %s, want %s: %s", w.branch(), theirs, f.Message)
	}
	w.git("-C", w.origin, "update-ref", "refs/heads/tidewaiter/login", pushed)
	f = w.seal(2)
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantFollows(f.Head, pushed)
}

// TestAPushThatIsTakenAfterTheReview: the server takes the earlier push only after the watchdog has asked what the branch has. The watchdog looks again by itself.
func TestAPushThatIsTakenAfterTheReview(t *testing.T) {
	t.Parallel()
	w, run, pushed := newUnheard(t)
	w.otherDocuments()
	w.git("-C", w.origin, "update-ref", "-d", "refs/heads/tidewaiter/login")
	run.watch(func(step string) error {
		if step == "knowledge journaled" && w.branch() == "" {
			w.git("-C", w.origin, "update-ref", "refs/heads/tidewaiter/login", pushed)
		}
		return nil
	})
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantFollows(f.Head, pushed)
}

// TestABranchThatIsDeletedAfterALostAnswer: what a user has taken away does not come back.
func TestABranchThatIsDeletedAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w, run, pushed := newUnheard(t)
	w.noDocuments()
	w.git("-C", w.origin, "update-ref", "-d", "refs/heads/tidewaiter/login")
	run.watch(nil)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.branch() != f.Head || w.git("-C", w.origin, "rev-list", "main.."+f.Head) != w.git("-C", w.origin, "rev-parse", pushed+"^") {
		t.Errorf("branch %s, head %s", w.branch(), f.Head)
	}
}

// TestAServerThatIsAwayAfterALostAnswer: the watchdog waits until it can see what the branch has.
func TestAServerThatIsAwayAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w, run, pushed := newUnheard(t)
	w.otherDocuments()
	w.move("repos/shop.git", "repos/away")
	run.watch(nil)
	w.eventually("the fault is told", func() bool {
		f := w.intake.Status().Fault
		return f != nil && f.Reason == protocol.ReasonRepositoryNotFound && strings.HasPrefix(f.Message, "see whether branch tidewaiter/login has an earlier commit with documents of reviewers: ")
	})
	w.move("repos/away", "repos/shop.git")
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantFollows(f.Head, pushed)
}

// TestTheDocumentsOfBeforeAreDeliveredAgain: a policy takes them back after the lost answer, and another one wants them. The commit on the branch has them.
func TestTheDocumentsOfBeforeAreDeliveredAgain(t *testing.T) {
	t.Parallel()
	w, run, pushed := newUnheard(t)
	w.intake.Order(approval)
	w.noDocuments()
	run.watch(nil)
	without := run.finish()
	wantFinal(t, without, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	if without.Head == pushed {
		t.Errorf("head %s has the documents", without.Head)
	}
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Knowledge.Deliver, o.Policy.Hash, o.Delivery.ApprovedCommit = policy.KnowledgeCommit, "on", pushed
	})
	f := w.seal(2)
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if f.Head != pushed || w.branch() != pushed {
		t.Errorf("branch %s, head %s, want %s", w.branch(), f.Head, pushed)
	}
}

// TestAnOldHistoryAfterALostAnswer: what was pushed with documents has a commit that the policy of now refuses. The one commit that takes the place of the history does
// not follow it, and its documents neither: a user has to delete the branch.
func TestAnOldHistoryAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w, start := newAudited(t, approval, func(o *protocol.Orders) {
		o.Policy.Knowledge = policy.Knowledge{Inject: true, Deliver: policy.KnowledgeCommit}
	})
	p := start(nil)
	w.signal("end")
	wantFinal(t, p.finish(), protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	w.learned(map[string]string{"design/form.md": saying("provisional", "* Forms post to /save.")})
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.RequireApproval = false })
	run := w.start(2, pullAt("pushed", 1))
	if err := run.wait(); !errors.Is(err, errPulled) {
		t.Fatal(err)
	}
	pushed := w.branch()
	w.intake.Order(enforcing)
	run.watch(nil)
	wantFinal(t, run.finish(), protocol.OutcomeBlocked, protocol.ReasonPushConflict)
	if pushed == "" || w.branch() != pushed {
		t.Errorf("branch %q, want %q", w.branch(), pushed)
	}
	w.git("-C", w.origin, "update-ref", "-d", "refs/heads/tidewaiter/login")
	f := w.seal(3)
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if n := w.git("-C", w.origin, "rev-list", "--count", "main.."+f.Head); n != "2" || w.git("-C", w.origin, "merge-base", f.Head, pushed) != w.git("-C", w.origin, "rev-parse", "main") {
		t.Errorf("%s commits on the branch, want the work and its documents", n)
	}
}
